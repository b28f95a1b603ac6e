// Takes samples with E2B's SDK: each line of the input names what to measure, and is
// answered with milliseconds, or with what went wrong.
const readline = require('node:readline')
const { Sandbox } = require('e2b')

const bare = { apiUrl: process.env.BARE_URL, sandboxUrl: process.env.BARE_URL }

async function took(what) {
  const begun = process.hrtime.bigint()
  await what()
  return Number(process.hrtime.bigint() - begun) / 1e6
}

async function main() {
  const warm = await Sandbox.create({ timeoutMs: 3600_000 })
  const answering = await Sandbox.create(bare)
  await warm.commands.run('true')
  const measures = {
    async create() {
      let sbx
      const ms = await took(async () => {
        sbx = await Sandbox.create()
        await sbx.commands.run('true')
      })
      await sbx.kill()
      return ms
    },
    run: () => took(() => warm.commands.run('true')),
    bare: () => took(() => answering.commands.run('true')),
  }
  for await (const name of readline.createInterface({ input: process.stdin })) {
    console.log(await measures[name]().catch((e) => String(e).replaceAll('\n', ' ')))
  }
  await warm.kill()
}

main().then(() => process.exit(0), (e) => { console.error(e); process.exit(1) })
