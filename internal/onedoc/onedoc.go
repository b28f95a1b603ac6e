// Package onedoc reads YAML files that hold one document: what stands behind it
// would be passed over in silence, and is an error here.
package onedoc

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"gopkg.in/yaml.v3"
)

// Decode reads a text into a struct that has all of its keys, a map or a
// [yaml.Node]. A text without any document leaves it as it is.
func Decode(text []byte, into any) error {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(into); err != nil {
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
	var more yaml.Node
	switch err := dec.Decode(&more); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("line %d: a further document begins, and the file holds one: take the line with --- away", more.Line)
}
