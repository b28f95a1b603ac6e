// Package mountns does things in the mount namespace of another process, such as to
// put a folder of this host into a sandbox that runs already. It takes Linux, and
// root of the host.
package mountns
