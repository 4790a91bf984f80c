// A tier in Node: everything in one thread.
//
// Usage: tier.js HOST:PORT UPSTREAM|- [forward=N] [idle=N] STAGE .., with times in microseconds, such as pool=4x20000us.
const http = require('http');

const [address, upstream, ...words] = process.argv.slice(2);
const options = Object.fromEntries(words.map((word) => word.split('=')));
const ms = (text) => parseInt(text, 10) / 1000;
const now = () => Number(process.hrtime.bigint()) / 1e6;
const sleepUntil = (then) => new Promise((done) => setTimeout(done, Math.max(0, Math.ceil(then - now()))));

// Each token is the time at which a worker became free: late timers do not add up.
function pool(workers, hold) {
  const tokens = Array(workers).fill(now());
  const waiting = [];
  const give = (token) => (waiting.length ? waiting.shift()(token) : tokens.push(token));
  return async () => {
    const arrived = now();
    const token = tokens.length ? tokens.shift() : await new Promise((taken) => waiting.push(taken));
    const free = Math.max(arrived, token) + hold;
    await sleepUntil(free);
    give(free);
  };
}

function burn(busy) {
  const used = () => { const { user, system } = process.cpuUsage(); return (user + system) / 1000; };
  return async () => { for (const end = used() + busy; used() < end;); };
}

function stage(word) {
  const [name, value] = word.split('=');
  switch (name) {
    case 'delay': return () => sleepUntil(now() + ms(value));
    case 'pool': return pool(parseInt(value, 10), ms(value.split('x')[1]));
    case 'lock': return pool(1, ms(value));
    case 'burn': return burn(ms(value));
    default: throw new Error(`'${word}' is no stage`);
  }
}

const stages = words.filter((word) => !/^(forward|idle)=/.test(word)).map(stage);
const agent = new http.Agent({ keepAlive: true, maxSockets: Number(options.forward) || Infinity });

function forward() {
  const [host, port] = upstream.split(':');
  return new Promise((done, failed) => {
    http.get({ host, port, agent }, (response) => response.resume().on('end', done)).on('error', failed);
  });
}

if (process.env.NAME) process.title = process.env.NAME;
const server = http.createServer(async (request, response) => {
  try {
    for (const serve of stages) await serve();
    if (upstream !== '-') await forward();
  } catch { response.statusCode = 502; }
  response.setHeader('Content-Length', 2);
  response.end('ok');
});
server.keepAliveTimeout = 600_000;
const [host, port] = address.split(':');
server.listen({ host, port, backlog: 4096 });
