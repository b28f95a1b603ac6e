// Package egress is an exec's way out of a sandbox without a network: it speaks
// as a proxy with what runs inside, over connections that the agent hands on, and
// reaches from this host what the sandbox's list of hosts has and nothing else.
//
// What comes from inside is taken to be hostile. A name is resolved here, once for
// each connection; every address is checked, and the address that was checked is
// the one that is dialled. A request of plain HTTP is read and written anew, so
// that what was checked is all that is sent; of TLS the server name of its hello
// is read, and nothing is decrypted.
package egress
