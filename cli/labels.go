package cli

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/caisson-dev/caisson/sandbox"
)

// labelFlag is --label, wherever something is made.
func labelFlag(f *pflag.FlagSet, labels *[]string) {
	f.StringArrayVar(labels, "label", nil, "label it `KEY=VALUE`, for lists to be filtered by (repeatable)")
}

// labelFilterFlag is --label, wherever something is listed.
func labelFilterFlag(f *pflag.FlagSet, labels *[]string) {
	f.StringArrayVar(labels, "label", nil, "only those with the label `KEY=VALUE` (repeatable)")
}

// labelsOf reads what --label was given. Errors: Invalid.
func labelsOf(given []string) (sandbox.Labels, error) {
	if len(given) == 0 {
		return nil, nil //nolint:nilnil // none were given
	}
	labels := sandbox.Labels{}
	for _, kv := range given {
		k, v, ok := strings.Cut(kv, "=")
		if !ok {
			return nil, sandbox.Errorf(sandbox.Invalid, "%q is not a label", kv).WithHint("--label takes KEY=VALUE")
		}
		labels[k] = v
	}
	return labels, labels.Check()
}
