package egress

import _ "embed"

// NodeProxy is what a version of Node that knows nothing of NODE_USE_ENV_PROXY loads
// before its program, so that its own clients find the way by the environment.
//
//go:embed proxy.cjs
var NodeProxy []byte
