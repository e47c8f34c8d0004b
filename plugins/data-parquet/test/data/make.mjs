// Makes the files of this folder again: npm install @duckdb/node-api hyparquet-writer in a folder, then node make.mjs FOLDER.
import fs from 'node:fs'
import path from 'node:path'
import { load_writers, write_files } from './files.mjs'

const here = path.dirname(new URL(import.meta.url).pathname)
const { connection, hyparquet } = await load_writers(process.argv[2])
const wanted = new Set(['duckdb-v1-zstd', 'duckdb-v1-lz4_raw', 'duckdb-v2-gzip', 'duckdb-v2-snappy', 'duckdb-nulls-v2', 'duckdb-no-row',
  'hyparquet-snappy-some', 'hyparquet-gzip-none', 'hyparquet-uncompressed-runs', 'hyparquet-groups', 'hyparquet-pages'])
const files = await write_files({ connection, hyparquet, folder: here, rows: 60, wanted: (name) => wanted.has(name) })
for (const [name, values] of files)
  fs.writeFileSync(path.join(here, name + '.values'), values)

// Smaller ones, for tests/fuzz.
const corpus = path.join(here, '../../../../tests/fuzz/corpus/parquet')
const small = new Set(['duckdb-v1-zstd', 'duckdb-v2-gzip', 'hyparquet-snappy-some', 'hyparquet-pages-required', 'hyparquet-gzip-runs',
  'hyparquet-uncompressed-none'])
await write_files({ connection, hyparquet, folder: corpus, rows: 4, wanted: (name) => small.has(name) })
