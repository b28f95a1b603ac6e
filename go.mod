module github.com/caisson-dev/caisson

go 1.26

require (
	github.com/hashicorp/yamux v0.1.2
	golang.org/x/sys v0.38.0
)
