// Serves the virtual MCP servers of ProgressiveMCPBench by Node, in place of the runtime that its authors deploy to:
//     node server.mjs FOLDER PORT        # FOLDER has the files that tools read, as root/...
import { readFile } from 'node:fs/promises'
import { join, normalize } from 'node:path'
import { serve } from '@hono/node-server'
import app from './src/index.ts'

const [folder, port] = process.argv.slice(2)
const assets = {
  async fetch(request) {
    try {
      const path = normalize(decodeURIComponent(new URL(request.url).pathname))
      return new Response(await readFile(join(folder, path)))
    } catch {
      return new Response(null, { status: 404 })
    }
  },
}
serve({ fetch: (request) => app.fetch(request, { ASSETS: assets }), hostname: '127.0.0.1', port: Number(port) })
