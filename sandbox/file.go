package sandbox

import "encoding/json"

// File is one entry that travels into the workspace with a request: a regular
// file, or a folder where Dir is set, or a symbolic link where Link is.
type File struct {
	Path string `json:"path"`           // relative to the workspace, with slashes, without ".."
	Mode uint32 `json:"mode,omitempty"` // permission bits; 0 is 0644, and 0755 for a folder
	Dir  bool   `json:"dir,omitempty"`
	Link string `json:"link,omitempty"` // target of a symbolic link
	// Data is the content, unless Ref names one that lies beside the request: see
	// [Local]. Size is the number of bytes of that one, and must be exact. Of a staged
	// file it may be the digest, sha256:HEX, of a text that everybody has: then nobody is
	// asked for it.
	Data []byte `json:"data_base64,omitempty"`
	Ref  string `json:"ref,omitempty"`
	Size int64  `json:"size,omitempty"`
}

// plainFile is a File without its methods, fileJSON what it is on the wire.
type (
	plainFile File
	fileJSON  struct {
		plainFile
		PathBytes []byte  `json:"path_base64,omitempty"`
		LinkBytes []byte  `json:"link_base64,omitempty"`
		Text      *string `json:"data,omitempty"`
	}
)

// MarshalJSON writes content that is UTF-8 as data, and adds path_base64 and
// link_base64 where these are not.
func (f File) MarshalJSON() ([]byte, error) {
	j := fileJSON{plainFile: plainFile(f)}
	_, j.PathBytes = nameJSON(f.Path)
	_, j.LinkBytes = nameJSON(f.Link)
	if text, _ := textOrBase64(f.Data); text != nil && len(f.Data) > 0 {
		j.Text, j.Data = text, nil
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (f *File) UnmarshalJSON(b []byte) error {
	j := fileJSON{plainFile: plainFile(*f)}
	err := json.Unmarshal(b, &j)
	*f = File(j.plainFile)
	if j.PathBytes != nil {
		f.Path = string(j.PathBytes)
	}
	if j.LinkBytes != nil {
		f.Link = string(j.LinkBytes)
	}
	if j.Text != nil {
		f.Data = []byte(*j.Text)
	}
	return err
}
