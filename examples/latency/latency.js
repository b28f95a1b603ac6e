// Reads an access log and prints, for each route, how many requests it had,
// how many failed, and the percentiles of their latency.
//
//     latency.js ACCESS.log

'use strict';

const fs = require('node:fs');
const readline = require('node:readline');

const LINE = /^(\S+) \S+ \S+ \[([^\]]+)\] "(\S+) (\S+) [^"]*" (\d{3}) (\d+) (\d+)$/;

// Numbers in a path name one thing among many of the same route.
const route = (method, path) => `${method} ${path.replace(/\/\d+/g, '/:id')}`;

// The smallest value that at least p percent of the values do not exceed.
const percentile = (sorted, p) => sorted[Math.max(0, Math.ceil((p / 100) * sorted.length) - 1)];

async function read(file) {
  const routes = new Map();
  let skipped = 0;
  for await (const line of readline.createInterface({ input: fs.createReadStream(file), crlfDelay: Infinity })) {
    const match = LINE.exec(line);
    if (!match) {
      skipped += 1;
      continue;
    }
    const key = route(match[3], match[4]);
    if (!routes.has(key)) routes.set(key, { failed: 0, times: [] });
    const entry = routes.get(key);
    entry.times.push(Number(match[7]));
    if (Number(match[5]) >= 500) entry.failed += 1;
  }
  return { routes, skipped };
}

function print({ routes, skipped }) {
  const row = (...cells) => console.log(cells.map((c, i) => (i ? String(c).padStart(9) : String(c).padEnd(20))).join(''));
  row('route', 'requests', 'failed', 'p50 ms', 'p90 ms', 'p99 ms');
  const slowestFirst = [...routes].map(([name, entry]) => {
    entry.times.sort((a, b) => a - b);
    return [name, entry];
  }).sort((a, b) => percentile(b[1].times, 90) - percentile(a[1].times, 90) || a[0].localeCompare(b[0]));
  let requests = 0;
  for (const [name, { failed, times }] of slowestFirst) {
    requests += times.length;
    row(name, times.length, failed, ...[50, 90, 99].map((p) => percentile(times, p)));
  }
  console.log(`${requests} requests, ${skipped} lines skipped`);
}

read(process.argv[2]).then(print).catch((error) => {
  console.error(`latency.js: ${error.message}`);
  process.exitCode = 1;
});
