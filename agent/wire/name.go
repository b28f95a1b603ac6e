package wire

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// Name is a path, or where a link leads: any bytes. In JSON it is a text, and
// where it is none, a list of its bytes in base64.
type Name string

// MarshalJSON implements [json.Marshaler].
func (n Name) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(n)) {
		return json.Marshal(string(n))
	}
	return json.Marshal([1][]byte{[]byte(n)})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (n *Name) UnmarshalJSON(b []byte) error {
	if !bytes.HasPrefix(b, []byte("[")) {
		return json.Unmarshal(b, (*string)(n))
	}
	var raw [1][]byte
	err := json.Unmarshal(b, &raw)
	*n = Name(raw[0])
	return err
}

// Names are paths as names.
func Names(paths []string) []Name {
	names := make([]Name, len(paths))
	for i, p := range paths {
		names[i] = Name(p)
	}
	return names
}
