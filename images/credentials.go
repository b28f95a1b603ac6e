package images

import (
	"github.com/docker/cli/cli/config"
	"github.com/docker/docker/api/types/registry"

	"github.com/caisson-dev/caisson/sandbox"
)

// hubServer is the name that docker keeps Docker Hub's credentials under.
const hubServer = "https://index.docker.io/v1/"

// credentials returns what docker's configuration, or a credential helper that
// it names, knows for a registry, in the form that the engine takes. A
// registry without credentials is asked without.
func (s *Store) credentials(domain string) (string, error) {
	dir := s.cfg.DockerConfig
	if dir == "" {
		dir = config.Dir()
	}
	bad := func(err error) error {
		return sandbox.Errorf(sandbox.Denied, "credentials for %s: %w", domain, err).
			WithHint("mend %s/config.json or its credential helper, or docker login again", dir)
	}
	file, err := config.Load(dir)
	if err != nil {
		return "", bad(err)
	}
	server := domain
	if domain == "docker.io" {
		server = hubServer
	}
	known, err := file.GetAuthConfig(server)
	if err != nil {
		return "", bad(err)
	}
	auth, err := registry.EncodeAuthConfig(registry.AuthConfig{
		Username: known.Username, Password: known.Password, Auth: known.Auth, ServerAddress: known.ServerAddress,
		IdentityToken: known.IdentityToken, RegistryToken: known.RegistryToken,
	})
	if err != nil {
		return "", bad(err)
	}
	return auth, nil
}
