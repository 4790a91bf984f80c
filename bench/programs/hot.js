// A server that spends its time in one function, `add`.
//
// Usage: hot.js HOST:PORT
const http = require('http');

function add() {
  let total = 0;
  for (let number = 0; number < 2_000_000; number++) total = (total + (number ^ 5)) | 0;
  return total;
}

const server = http.createServer((request, response) => response.end(String(add())));
const [host, port] = process.argv[2].split(':');
server.listen({ host, port });
