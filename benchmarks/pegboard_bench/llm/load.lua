-- wrk: the same request again and again, or one that asks something else each time; figures at the end as JSON.
local body, before, after
local asked = 0
local threads = 0

function setup(thread)
  thread:set("seed", threads)
  threads = threads + 1
end

function init(args)
  local file = io.open(args[1], "rb")
  body = file:read("*a")
  file:close()
  wrk.method = "POST"
  wrk.headers["content-type"] = "application/json"
  wrk.headers["authorization"] = "Bearer sk-none"
  local place, last = string.find(body, "@ASK@", 1, true)
  if place then before, after = string.sub(body, 1, place - 1), string.sub(body, last + 1) end
  start = args[2] or "0"
end

function request()
  if not before then return wrk.format(nil, nil, nil, body) end
  asked = asked + 1
  return wrk.format(nil, nil, nil, before .. start .. "-" .. seed .. "-" .. asked .. after)
end

function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests": %d, "seconds": %.6f, "p50_ms": %.4f, "p95_ms": %.4f, "p99_ms": %.4f, "errors": %d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(95) / 1e3,
    latency:percentile(99) / 1e3, errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
