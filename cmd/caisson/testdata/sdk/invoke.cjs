// Calls the function f of the server in ENDPOINT by the vendor's SDK, as its users do,
// and prints what each call came to, in JSON.
const { LambdaClient, InvokeCommand } = require("@aws-sdk/client-lambda");

const client = (sessionToken) => new LambdaClient({
  endpoint: process.env.ENDPOINT, region: "local", maxAttempts: 1,
  credentials: { accessKeyId: "any", secretAccessKey: "any", sessionToken },
});

const call = async (token, input) => {
  try {
    const done = await client(token).send(new InvokeCommand({ FunctionName: "f", Payload: JSON.stringify({ a: 20 }), ...input }));
    return {
      status: done.StatusCode, version: done.ExecutedVersion, fault: done.FunctionError,
      payload: Buffer.from(done.Payload ?? []).toString(), log: Buffer.from(done.LogResult ?? "", "base64").toString(),
    };
  } catch (err) {
    return { error: err.name, status: err.$metadata?.httpStatusCode, message: err.message };
  }
};

(async () => {
  const token = process.env.CAISSON_TOKEN;
  console.log(JSON.stringify({
    value: await call(token, { LogType: "Tail" }),
    fault: await call(token, { Payload: "{}" }),
    event: await call(token, { InvocationType: "Event" }),
    dry: await call(token, { InvocationType: "DryRun" }),
    missing: await call(token, { FunctionName: "none" }),
    stranger: await call("csn_wrong", {}),
  }));
})();
