module github.com/caisson-dev/caisson

go 1.26.0

require (
	github.com/tree-sitter/go-tree-sitter v0.25.0
	github.com/tree-sitter/tree-sitter-python v0.25.0
	golang.org/x/text v0.43.0
	gopkg.in/yaml.v3 v3.0.1
)

require github.com/mattn/go-pointer v0.0.1 // indirect
