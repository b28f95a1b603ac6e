package e2b

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// The files below protos say what the data plane's messages are; these bytes are what
// they say, for programs.
//
//go:generate go run github.com/bufbuild/buf/cmd/buf@v1.75.0 build protos --as-file-descriptor-set --exclude-source-info -o protos/data.binpb
//go:embed protos/data.binpb
var shape []byte

// shapes are read for the first client that wants them: E2B's own do not.
var shapes = sync.OnceValue(func() *protoregistry.Files {
	var set descriptorpb.FileDescriptorSet
	err := proto.Unmarshal(shape, &set)
	if err == nil {
		var files *protoregistry.Files
		if files, err = protodesc.NewFiles(&set); err == nil {
			return files
		}
	}
	panic(fmt.Sprintf("e2b: the data plane's shape: %v", err)) // it was built in
})

// protoBinary has Connect carry one procedure's structs as Protocol Buffers in binary, by way
// of the JSON that both have.
type protoBinary struct{ procedure string }

// method is what the procedure takes and returns.
func (c protoBinary) method() (protoreflect.MethodDescriptor, error) {
	d, err := shapes().FindDescriptorByName(protoreflect.FullName(strings.ReplaceAll(c.procedure, "/", ".")))
	if err != nil {
		return nil, err
	}
	m, ok := d.(protoreflect.MethodDescriptor)
	if !ok {
		return nil, fmt.Errorf("%s is no procedure", c.procedure)
	}
	return m, nil
}

func (protoBinary) Name() string { return "proto" }

func (c protoBinary) Marshal(v any) ([]byte, error) {
	if m, ok := v.(proto.Message); ok { // one of Connect's own, such as an error's
		return proto.Marshal(m)
	}
	m, err := c.method()
	if err != nil {
		return nil, err
	}
	return toBinary(m.Output(), v)
}

func (c protoBinary) Unmarshal(b []byte, v any) error {
	m, err := c.method()
	if err != nil {
		return err
	}
	return fromBinary(m.Input(), b, v)
}

// toBinary is a struct as a message in binary.
func toBinary(d protoreflect.MessageDescriptor, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	m := dynamicpb.NewMessage(d)
	if err := protojson.Unmarshal(text, m); err != nil {
		return nil, err
	}
	return proto.Marshal(m)
}

// fromBinary reads a message in binary into a struct.
func fromBinary(d protoreflect.MessageDescriptor, b []byte, v any) error {
	m := dynamicpb.NewMessage(d)
	if err := proto.Unmarshal(b, m); err != nil {
		return err
	}
	text, err := protojson.Marshal(m)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}
