module github.com/caisson-dev/caisson

go 1.26.0

require (
	golang.org/x/text v0.43.0
	gopkg.in/yaml.v3 v3.0.1
	mvdan.cc/sh/v3 v3.14.1
)
