package sandbox

import (
	"errors"
	"fmt"
	"net/url"
)

// ShownAddress is what may be shown of an address: its scheme and its host. The
// user, the path and the query of many are secrets.
func ShownAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" || u.Host == "" {
		return "an address without scheme or host"
	}
	return u.Scheme + "://" + u.Host
}

// ShownError is err with the address of a request that failed as
// [ShownAddress] has it: net/http puts all of it into what it says.
func ShownError(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("%s: %w", ShownAddress(failed.URL), failed.Err)
	}
	return err
}
