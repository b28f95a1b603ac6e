'use strict';
// Versions of Node that know nothing of NODE_USE_ENV_PROXY find the way out by this: it
// leads http, https and fetch through the proxy of the environment, by CONNECT.
(() => {
  if (process.allowedNodeEnvironmentFlags.has('--use-env-proxy') || !process.env.http_proxy) return;
  const http = require('http');
  const https = require('https');
  const tls = require('tls');
  const { Readable } = require('stream');
  const proxy = new URL(process.env.http_proxy);
  const toProxy = new http.Agent();
  const own = (host) => ['localhost', '127.0.0.1', '::1'].includes(host);

  // connect asks the proxy for a tunnel. What it refuses is told in its own words.
  const connect = (host, port, done) => {
    const target = `${host.includes(':') ? `[${host}]` : host}:${port}`;
    const req = http.request({ host: proxy.hostname, port: proxy.port, agent: toProxy, method: 'CONNECT', path: target });
    req.once('error', done);
    req.once('connect', (res, socket, head) => {
      if (res.statusCode === 200) {
        done(null, socket);
        return;
      }
      const said = [head];
      socket.on('data', (b) => said.push(b));
      socket.on('error', done);
      socket.on('end', () => {
        done(new Error(Buffer.concat(said).toString().trim()));
        socket.end();
      });
    });
    req.end();
  };

  const through = (Agent, wrap) => class extends Agent {
    createConnection(options, done) {
      const host = options.host || 'localhost';
      if (options.socketPath || own(host)) return super.createConnection(options, done);
      connect(host, options.port, (err, socket) => {
        if (err) done(err);
        else done(null, wrap(socket, options));
      });
      return undefined;
    }
  };
  const Plain = through(http.Agent, (socket) => socket);
  const Secure = through(https.Agent, (socket, options) => tls.connect({ ...options, socket }));
  http.globalAgent = new Plain(http.globalAgent.options);
  https.globalAgent = new Secure(https.globalAgent.options);

  // What fetch dispatches goes by these agents, too.
  const send = (opts, handler) => {
    const url = new URL(opts.path, opts.origin);
    const headers = Array.isArray(opts.headers) ? pairs(opts.headers) : opts.headers;
    const req = (url.protocol === 'https:' ? https : http).request(url, { method: opts.method, headers });
    let over = false;
    const fail = (err) => {
      if (over) return;
      over = true;
      handler.onError(err);
    };
    req.on('error', fail);
    req.on('response', (res) => {
      handler.onHeaders(res.statusCode, res.rawHeaders.map((h) => Buffer.from(h, 'latin1')), () => res.resume(), res.statusMessage);
      res.on('data', (b) => { if (handler.onData(b) === false) res.pause(); });
      res.on('end', () => {
        if (over) return;
        over = true;
        handler.onComplete([]);
      });
      res.on('error', fail);
    });
    handler.onConnect((err) => req.destroy(err || new Error('aborted')));
    if (opts.body && typeof opts.body !== 'string' && !Buffer.isBuffer(opts.body)) {
      const body = Readable.from(opts.body);
      body.on('error', (err) => req.destroy(err));
      body.pipe(req);
    } else {
      req.end(opts.body || undefined);
    }
    return true;
  };
  const pairs = (list) => {
    const headers = {};
    for (let i = 0; i < list.length; i += 2) {
      const name = list[i].toString();
      headers[name] = headers[name] === undefined ? list[i + 1].toString() : [].concat(headers[name], list[i + 1].toString());
    }
    return headers;
  };
  globalThis[Symbol.for('undici.globalDispatcher.1')] = { dispatch: send, close: async () => {}, destroy: async () => {} };
})();
