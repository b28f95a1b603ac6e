// Speaks with caisson by npm's @modelcontextprotocol/sdk, as it is.
// node mcp_client.mjs SDK-FOLDER stdio COMMAND ARGS… | http URL TOKEN
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

const [folder, way, ...rest] = process.argv.slice(2);
const from = (name) => import(pathToFileURL(`${folder}/dist/esm/${name}.js`));
const { Client } = await from("client/index");
const { StdioClientTransport } = await from("client/stdio");
const { StreamableHTTPClientTransport } = await from("client/streamableHttp");
const { ElicitRequestSchema } = await from("types");

async function connect(capabilities) {
  const client = new Client({ name: "npm", version: "1" }, { capabilities });
  const transport = way === "stdio"
    ? new StdioClientTransport({ command: rest[0], args: rest.slice(1), env: process.env, stderr: "inherit" })
    : new StreamableHTTPClientTransport(new URL(rest[0]), { requestInit: { headers: { Authorization: `Bearer ${rest[1]}` } } });
  const ask = async (name, args, options) => (await client.callTool({ name, arguments: args }, undefined, { timeout: 300_000, ...options })).structuredContent;
  await client.connect(transport);
  return { client, ask };
}

const { client, ask } = await connect({});
const tools = (await client.listTools()).tools.map((t) => t.name);
for (const name of ["run_code", "run_command", "shell", "session_create", "file_write", "changes", "undo", "run_tests", "check_policy"]) assert(tools.includes(name), name);

let out = await ask("run_code", { language: "python", code: "import sys; print(6 * 7); sys.exit(3)" });
assert.equal(out.status, "error");
assert.deepEqual([out.exit_code, out.exit_reason, out.stdout], [3, "exited", "42\n"]);

// A session: files, a run with its changes, a shell that remembers, undo.
const session = `npm-${way}-${process.pid}`;
assert.equal((await ask("session_create", { name: session, language: "python" })).name, session);
await ask("file_write", { session, path: "in.txt", text: "one\n" });
out = await ask("run_code", { session, language: "python", code: "open('in.txt', 'a').write('two\\n'); open('new.txt', 'w').write('x')" });
assert.equal(out.status, "success", JSON.stringify(out));
assert.deepEqual(out.changes.map((c) => [c.path, c.op]), [["in.txt", "modified"], ["new.txt", "created"]]);
const file = await client.readResource({ uri: `caisson://sessions/${session}/files/in.txt` });
assert.equal(file.contents[0].text, "one\ntwo\n");
assert((await client.listResources()).resources.some((r) => r.uri === `caisson://sessions/${session}/changes`));
const records = JSON.parse((await client.readResource({ uri: `caisson://sessions/${session}/changes` })).contents[0].text).items;
assert(records.some((r) => r.exec_id === out.exec_id), JSON.stringify(records));
const events = JSON.parse((await client.readResource({ uri: `caisson://sessions/${session}/audit` })).contents[0].text).items;
assert(events.some((e) => e.kind === "exec.ended" && e.exec === out.exec_id), JSON.stringify(events.map((e) => e.kind)));
const diffs = (await ask("changes", { session, exec_id: out.exec_id })).items;
assert(diffs.find((d) => d.path === "in.txt").diff.includes("+two"));
await ask("undo", { session, exec_id: out.exec_id });
assert.equal((await ask("file_read", { session, path: "in.txt" })).text, "one\n");
await ask("shell", { session, text: "cd /tmp; X=5" });
out = await ask("shell", { session, text: "echo $X; pwd" });
assert.deepEqual([out.stdout, out.shell.dir], ["5\n/tmp\n", "/tmp"]);

// Output that is cut is whole in its resource.
out = await ask("run_code", { session, language: "python", code: "print('y' * 100000)" });
assert(out.stdout.length < 30_000 && out.cut.length === 1);
assert.equal((await client.readResource({ uri: out.cut[0] })).contents[0].text, "y".repeat(100_000) + "\n");

// Tests that fail say where.
const judged = await ask("run_tests", { solution: { "solution.py": "def add(a, b): return a - b" }, tests: { "test_add.py": "from solution import add\ndef test_add():\n    assert add(1, 2) == 3\n" } });
assert.equal(judged.all_passed, false);
assert.deepEqual([judged.tests[0].outcome, judged.tests[0].line], ["failed", 3]);
assert.equal((await ask("run_tests", { solution: { "solution.py": "def add(a, b): return a + b" }, function: "add", cases: [{ input: [1, 2], expected: 3 }] })).all_passed, true);

// Progress, and a client that gives up: what ran for it ends.
const told = [];
const control = new AbortController();
const slow = ask("run_code", { session, language: "python", code: "import time\nprint('begun', flush=True)\ntime.sleep(600)", timeout_seconds: 900 }, {
  signal: control.signal, onprogress: (p) => { told.push(p.message); if (p.message.includes("begun")) control.abort(); },
});
await assert.rejects(slow);
assert(told.length > 0);
for (let running = true; running;) {
  const view = (await ask("session_list", {})).items.find((s) => s.name === session);
  running = view.execs.some((e) => !e.shell && !e.ended);
}

// What policy asks about: no form here, so it waits in the queue and says how.
assert.equal((await ask("check_policy", { language: "python", code: "import os; os.system('rm -rf /')" })).verdict === "allow", false);
const asked = { command: ["env"], env: { MODE: way } };
out = await ask("run_command", asked);
assert.equal(out.status, "rejected", JSON.stringify(out));
const question = /caisson approvals approve ([0-9a-f]+)/.exec(out.refused)[1];
process.stdout.write(`QUESTION ${question}\n`);
await new Promise((done) => process.stdin.once("data", done)); // somebody has approved it
out = await ask("run_command", asked);
assert.equal(out.status, "success", JSON.stringify(out));
assert(out.stdout.includes(`MODE=${way}`));

// With a form, its answer counts.
const forms = await connect({ elicitation: {} });
let answer = { action: "decline" };
forms.client.setRequestHandler(ElicitRequestSchema, async (r) => { assert(r.params.message.includes("env")); return answer; });
assert.equal((await forms.ask("run_command", asked)).status, "rejected");
answer = { action: "accept", content: { answer: "run it once" } };
out = await forms.ask("run_command", asked);
assert.equal(out.status, "success", JSON.stringify(out));
await forms.client.close();

await ask("session_remove", { session, force: true });
await client.close();
process.stdout.write("DONE\n");
process.exit(0);
