package wire

// Egress asks the agent to listen on the loopback device of the sandbox, for what an
// exec wants to reach outside. The agent answers with Data frames of numbers, as
// [AppendNumber] writes them: first the port, and then one for each connection that
// came. It stops when the exec has ended or the stream does, and then ends the
// connections too.
//
// A connection with [Hello].Outlet does the same in place of the stream: with a byte
// comes the socket that listens, and the host accepts by itself. A connection that ends
// without a byte says that this call would fail.
type Egress struct {
	ID string `json:"id"` // of the exec
}

// Take carries a connection that was told of: Data frames both ways, and DataEnd from
// each side that says no more.
type Take struct {
	ID    string `json:"id"`              // of the exec
	Conn  uint32 `json:"conn"`            // its number
	Tools bool   `json:"tools,omitempty"` // it came by [OpTools]
}

// Dial connects to what programs of the sandbox listen on: a TCP port of its loopback
// device. A Reply says that the connection stands; then come Data frames both ways, and
// DataEnd from each side that says no more. It is not_found where nothing listens.
type Dial struct {
	Port int `json:"port"`
}

// MaxOutward is how many connections of one exec the agent holds at once, MaxCalling
// how many to the tools' sockets of all, and MaxDialed how many to ports inside.
const (
	MaxOutward = 32
	MaxCalling = 96
	MaxDialed  = 64
)
