module github.com/caisson-dev/caisson

go 1.26.0

require (
	golang.org/x/text v0.43.0
	mvdan.cc/sh/v3 v3.14.1
)
