package e2b

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// TestProtos: what is built in is what the files below protos say, statement by statement.
// Where it is not, go generate ./api/e2b makes it so.
func TestProtos(t *testing.T) {
	t.Parallel()
	var told, built []string
	sources, err := filepath.Glob("protos/*/*.proto")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range sources {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		told = append(told, statements(t, strings.TrimPrefix(filepath.ToSlash(name), "protos/"), string(text))...)
	}
	shapes().RangeFiles(func(f protoreflect.FileDescriptor) bool {
		if !strings.HasPrefix(f.Path(), "google/") {
			built = append(built, fileStatements(f)...)
		}
		return true
	})
	slices.Sort(told)
	slices.Sort(built)
	if d := cmp.Diff(told, built); d != "" || len(told) < 100 {
		t.Errorf("%d statements; the files (-) and what is built in (+): %s", len(told), d)
	}
}

var (
	comments = regexp.MustCompile(`//[^\n]*`)
	parts    = regexp.MustCompile(`[^{};]*[{};]`)
	fields   = regexp.MustCompile(`^((?:repeated|optional) )?([\w.]+) (\w+ = \d+)$`)
	mapped   = regexp.MustCompile(`^map<(\w+), ?([\w.]+)> (\w+ = \d+)$`)
	calls    = regexp.MustCompile(`^rpc (\w+)\((stream )?([\w.]+)\) returns \((stream )?([\w.]+)\)$`)
)

// statements are those of a source, each behind the blocks that it stands in, with the
// full names of types.
func statements(t *testing.T, file, text string) (list []string) {
	t.Helper()
	var blocks []string
	scope := protoreflect.FullName("")
	for _, part := range parts.FindAllString(comments.ReplaceAllString(text, ""), -1) {
		s := strings.Join(strings.Fields(part[:len(part)-1]), " ")
		switch part[len(part)-1] {
		case '}':
			if strings.HasPrefix(blocks[len(blocks)-1], "message ") {
				scope = scope.Parent()
			}
			blocks = blocks[:len(blocks)-1]
			continue
		case '{':
			blocks = append(blocks, s)
			if name, is := strings.CutPrefix(s, "message "); is {
				scope = scope.Append(protoreflect.Name(name))
			}
			s = ""
		}
		if name, is := strings.CutPrefix(s, "package "); is {
			scope = protoreflect.FullName(name)
		}
		if m := mapped.FindStringSubmatch(s); m != nil {
			s = fmt.Sprintf("map<%s, %s> %s", m[1], resolved(scope, m[2]), m[3])
		} else if m := calls.FindStringSubmatch(s); m != nil {
			s = fmt.Sprintf("rpc %s(%s%s) returns (%s%s)", m[1], m[2], resolved(scope, m[3]), m[4], resolved(scope, m[5]))
		} else if m := fields.FindStringSubmatch(s); m != nil {
			s = m[1] + resolved(scope, m[2]) + " " + m[3]
		}
		list = append(list, strings.Join(append([]string{file}, append(slices.Clone(blocks), s)...), " | "))
	}
	if len(blocks) > 0 {
		t.Errorf("%s ends within %v", file, blocks)
	}
	return list
}

// resolved is the full name of a type that a source names in a scope; others are what
// they are.
func resolved(scope protoreflect.FullName, name string) string {
	for {
		full := name
		if scope != "" {
			full = string(scope) + "." + name
		}
		if _, err := shapes().FindDescriptorByName(protoreflect.FullName(full)); err == nil {
			return full
		}
		if scope == "" {
			return name
		}
		scope = scope.Parent()
	}
}

// fileStatements are those that a source of a file would have.
func fileStatements(f protoreflect.FileDescriptor) (list []string) {
	say := func(format string, a ...any) { list = append(list, f.Path()+" | "+fmt.Sprintf(format, a...)) }
	say("syntax = %q", f.Syntax().String())
	say("package %s", f.Package())
	for i := range f.Imports().Len() {
		say("import %q", f.Imports().Get(i).Path())
	}
	for i := range f.Services().Len() {
		s := f.Services().Get(i)
		say("service %s | ", s.Name())
		for j := range s.Methods().Len() {
			m := s.Methods().Get(j)
			say("service %s | rpc %s(%s%s) returns (%s%s)", s.Name(), m.Name(), streamed(m.IsStreamingClient()), m.Input().FullName(), streamed(m.IsStreamingServer()), m.Output().FullName())
		}
	}
	enumStatements(say, "", f.Enums())
	messageStatements(say, "", f.Messages())
	return list
}

func streamed(is bool) string {
	if is {
		return "stream "
	}
	return ""
}

func enumStatements(say func(string, ...any), in string, enums protoreflect.EnumDescriptors) {
	for i := range enums.Len() {
		e := enums.Get(i)
		say("%senum %s | ", in, e.Name())
		for j := range e.Values().Len() {
			say("%senum %s | %s = %d", in, e.Name(), e.Values().Get(j).Name(), e.Values().Get(j).Number())
		}
	}
}

func messageStatements(say func(string, ...any), in string, messages protoreflect.MessageDescriptors) {
	for i := range messages.Len() {
		m := messages.Get(i)
		if m.IsMapEntry() {
			continue
		}
		block := in + "message " + string(m.Name()) + " | "
		say("%s", block)
		for j := range m.Oneofs().Len() {
			if o := m.Oneofs().Get(j); !o.IsSynthetic() {
				say("%soneof %s | ", block, o.Name())
			}
		}
		for j := range m.Fields().Len() {
			f := m.Fields().Get(j)
			within := block
			if o := f.ContainingOneof(); o != nil && !o.IsSynthetic() {
				within += "oneof " + string(o.Name()) + " | "
			}
			say("%s%s %s = %d", within, typeOf(f), f.Name(), f.Number())
		}
		enumStatements(say, block, m.Enums())
		messageStatements(say, block, m.Messages())
	}
}

// typeOf is a field's type as a source says it.
func typeOf(f protoreflect.FieldDescriptor) string {
	kind := f.Kind().String()
	switch {
	case f.IsMap():
		return fmt.Sprintf("map<%s, %s>", typeOf(f.MapKey()), typeOf(f.MapValue()))
	case f.Message() != nil:
		kind = string(f.Message().FullName())
	case f.Enum() != nil:
		kind = string(f.Enum().FullName())
	}
	switch {
	case f.IsList():
		return "repeated " + kind
	case f.HasOptionalKeyword():
		return "optional " + kind
	}
	return kind
}
