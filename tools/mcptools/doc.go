// Package mcptools has the tools of MCP servers as tools that programs may call: a
// client of the Model Context Protocol, over a program's standard input and output or
// over streamable HTTP. A server that ends is begun again, and what it lists then is
// what there is. It offers a server nothing: no roots, no sampling, no questions.
package mcptools
