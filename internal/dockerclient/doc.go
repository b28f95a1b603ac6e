// Package dockerclient makes the client of the Docker SDK that the adapters
// use, and turns the SDK's errors into the kinds of package sandbox.
//
// It finds the engine as the docker command does: DOCKER_HOST, else
// DOCKER_CONTEXT, else the current context of the docker configuration, else
// the default socket; with DOCKER_TLS, DOCKER_TLS_VERIFY and DOCKER_CERT_PATH
// for TCP, and ssh:// hosts through the ssh command.
//
// It is not a layer over the SDK: callers get the SDK's own client from
// [Client.API] and hand its errors to [Wrap]. [New] connects to nothing; the
// first API call pings the engine once, negotiates the version of the API and
// checks it against [MinAPIVersion], and later calls cost an atomic load.
package dockerclient
