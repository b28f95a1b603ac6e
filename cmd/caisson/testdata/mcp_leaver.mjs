// Leaves caisson in the middle of a call, by npm's @modelcontextprotocol/sdk over HTTP.
// node mcp_leaver.mjs SDK-FOLDER URL TOKEN ends | vanishes
import { pathToFileURL } from "node:url";

const [folder, url, token, way] = process.argv.slice(2);
const from = (name) => import(pathToFileURL(`${folder}/dist/esm/${name}.js`));
const { Client } = await from("client/index");
const { StreamableHTTPClientTransport } = await from("client/streamableHttp");

const client = new Client({ name: "npm", version: "1" });
const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } });
await client.connect(transport);
const limit = way === "ends" ? 900 : 20;
client.callTool({ name: "run_command", arguments: { command: ["sh", "-c", "echo begun; sleep 800"], timeout_seconds: limit } }, undefined, {
  timeout: 900_000,
  onprogress: async (p) => {
    if (!p.message.includes("begun")) return;
    if (way === "ends") await transport.terminateSession(); // as the protocol has it
    process.kill(process.pid, "SIGKILL");
  },
}).catch(() => {});
