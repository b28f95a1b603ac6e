package server

import (
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/testloop"
)

// scalars are types of the vocabulary that are neither texts nor structs in JSON.
var scalars = map[reflect.Type]reflect.Type{
	reflect.TypeFor[sandbox.Duration](): reflect.TypeFor[milliseconds](),
	reflect.TypeFor[sandbox.Network]():  reflect.TypeFor[networkSchema](),
	reflect.TypeFor[testloop.Texts]():   reflect.TypeFor[textsSchema](),
	reflect.TypeFor[testloop.Name]():    reflect.TypeFor[nameOrNumber](),
}

var problemType = reflect.TypeFor[wire.Problem]()

// newRegistry is a registry of schemas that knows the forms which types of ours
// have in JSON.
func newRegistry() huma.Registry {
	names := map[reflect.Type]string{reflect.TypeFor[sandbox.Problem](): "PlainProblem"} // beside the server's own
	r := huma.NewMapRegistry("#/components/schemas/", func(t reflect.Type, hint string) string {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if name, ok := names[t]; ok {
			return name
		}
		name := huma.DefaultSchemaNamer(t, hint)
		if t.PkgPath() == problemType.PkgPath() && t != problemType && !strings.Contains(t.Name(), "[") {
			name += "Body" // beside what the vocabulary calls so
		}
		return name
	})
	for t, form := range sandbox.Forms() {
		flat := flattened(form)
		names[flat] = t.Name()
		r.RegisterTypeAlias(t, flat)
	}
	for t, scalar := range scalars {
		r.RegisterTypeAlias(t, scalar)
	}
	return r
}

// flattened is a struct with the fields of those that t embeds in their place:
// huma passes over embedded structs whose names are not exported.
func flattened(t reflect.Type) reflect.Type {
	return reflect.StructOf(fieldsOf(t))
}

func fieldsOf(t reflect.Type) []reflect.StructField {
	var fields []reflect.StructField
	for f := range t.Fields() {
		switch {
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			fields = append(fields, fieldsOf(f.Type)...)
		case f.IsExported() && !strings.HasPrefix(f.Tag.Get("json"), "-"):
			fields = append(fields, reflect.StructField{Name: f.Name, Type: f.Type, Tag: f.Tag})
		}
	}
	return fields
}

// milliseconds describes a [sandbox.Duration].
type milliseconds struct{}

// Schema implements [huma.SchemaProvider].
func (milliseconds) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeNumber, Description: "milliseconds"}
}

// networkSchema describes a [sandbox.Network], which may be given as a word.
type networkSchema struct{}

// Schema implements [huma.SchemaProvider].
func (networkSchema) Schema(r huma.Registry) *huma.Schema {
	type form sandbox.Network // without the alias
	object := huma.SchemaFromType(r, reflect.TypeFor[form]())
	return &huma.Schema{OneOf: []*huma.Schema{object, {Type: huma.TypeString, Description: "a mode: none, allow, bridge, or a network of the engine's"}}}
}
