// Package docker holds the Dockerfiles of the language images and of caisson
// itself. It is no code: it hands the folders to whoever builds from them.
package docker

import "embed"

// Languages holds a folder for each language that an image can be built for,
// with its Dockerfile and whatever else that needs.
//
//go:embed node python shell
var Languages embed.FS
