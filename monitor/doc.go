// Package monitor watches what sandboxes use: it takes samples of those that
// live in its process, keeps what they use, and raises alerts by rules. It makes
// and ends no sandbox: it asks for samples and for actions by [Sandboxes], and
// what it finds stands in a [Store], for all processes.
//
// An alert is one for each rule, sandbox and episode. It fires once its
// condition held for a time over all samples, and resolves once it was clear for
// a time. Of several processes that sample the same sandbox, the store lets one
// fire it and one resolve it.
package monitor
