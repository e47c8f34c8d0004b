// node compare.mjs FOLDER PROGRAM: FOLDER has node_modules and room for files, PROGRAM is parquet-values.
import fs from 'node:fs'
import path from 'node:path'
import { execFileSync } from 'node:child_process'
import { load_writers, values_by_duckdb, write_files } from '../../../plugins/data-parquet/test/data/files.mjs'

const [folder, program] = [path.resolve(process.argv[2]), process.argv[3]]
const ROWS = 3000
const ROWS_OF_SPEED = 2000000
const LEAST_RATIO = 0.5
const ours = (...args) => execFileSync(program, args, { maxBuffer: 1 << 30, encoding: 'utf8' })

let failed = 0
let values = 0
function compare(what, expected, found) {
  const [a, b] = [expected.split('\n'), found.split('\n')]
  values += a.reduce((sum, line) => sum + (line ? line.split('\t').length : 0), 0)
  const row = a.findIndex((line, i) => line !== b[i])
  if (row < 0 && a.length === b.length) return
  failed += 1
  const [x, y] = [a[row]?.split('\t') ?? [], b[row]?.split('\t') ?? []]
  const column = Math.max(0, x.findIndex((value, i) => value !== y[i]))
  console.log(`${what}: row ${row + 1} of ${a.length - 1}, column ${column}: expected ${x[column]}, found ${y[column]}`)
}

const { connection, hyparquet } = await load_writers(folder)
const { parquetMetadataAsync, parquetReadObjects } = await import(path.join(folder, 'node_modules/hyparquet/src/index.js'))
const { asyncBufferFromFile } = await import(path.join(folder, 'node_modules/hyparquet/src/node.js'))
const { compressors } = await import(path.join(folder, 'node_modules/hyparquet-compressors/src/index.js'))

// Theirs, read by us.
const files = await write_files({ connection, hyparquet, folder, rows: ROWS })
for (const [name, expected] of files)
  compare(name, expected, ours(path.join(folder, name + '.parquet')))

// Ours, read by DuckDB and hyparquet: written again from each of theirs.
const view = new DataView(new ArrayBuffer(8))
const bits = (value, size) => {
  if (Number.isNaN(value)) return 'nan'
  if (size === 4) view.setFloat32(0, value)
  else view.setFloat64(0, value)
  return (size === 4 ? view.getUint32(0) : view.getBigUint64(0)).toString(16).padStart(2 * size, '0')
}
let by_hyparquet = 0
for (const [name] of files) {
  const file = path.join(folder, name + '.copy.parquet')
  ours('--copy', path.join(folder, name + '.parquet'), file)
  const expected = ours(file)
  compare(name + ', written again, by DuckDB', expected, await values_by_duckdb(connection, file))
  const buffer = await asyncBufferFromFile(file)
  const metadata = await parquetMetadataAsync(buffer)
  const types = metadata.schema.slice(1).map((element) => element.type)
  const rows = await parquetReadObjects({ file: buffer, compressors })
  const shown = (value, type) => type === 'FLOAT' ? bits(value, 4) : type === 'DOUBLE' ? bits(value, 8)
    : type === 'BYTE_ARRAY' ? JSON.stringify(value) : String(value)
  compare(name + ', written again, by hyparquet', expected,
    rows.map((row) => Object.values(row).map((value, i) => shown(value, types[i])).join('\t') + '\n').join(''))
  by_hyparquet += 1
}
console.log(`${files.length} files read, ${files.length} written and read by DuckDB, ${by_hyparquet} of them by hyparquet; ` +
  `${values} values compared, ${failed} files differ`)

// Ten columns of numbers: PLAIN and dictionaries.
await connection.run(`create table numbers as select i as id, random() * 1000 as d0, random() as d1, (i % 97)::double as d2,
  i * 3 as b0, (hash(i) % 1000)::bigint as b1, (hash(i + 1) % 100000)::integer as i0, (hash(i) % 7)::double / 4 as d3,
  random() as d4, i % 13 as b2 from range(${ROWS_OF_SPEED}) r(i)`)
const sums = ['id', 'd0', 'd1', 'd2', 'b0', 'b1', 'i0', 'd3', 'd4', 'b2'].map((name) => `sum(${name})`).join(', ')
for (const [version, codec] of [['v1', 'zstd'], ['v2', 'zstd'], ['v1', 'snappy'], ['v1', 'uncompressed']]) {
  const file = path.join(folder, `numbers-${version}-${codec}.parquet`)
  await connection.run(`copy numbers to '${file}' (format parquet, codec ${codec}, parquet_version ${version})`)
  let [theirs, mine] = [0, 0]
  for (let round = 0; round < 3; ++round) {
    const begin = process.hrtime.bigint()
    await connection.run(`select ${sums} from read_parquet('${file}')`)
    theirs = Math.max(theirs, ROWS_OF_SPEED / (Number(process.hrtime.bigint() - begin) / 1e9))
    mine = Math.max(mine, Number(ours('--speed', '2', file)))
  }
  const ratio = mine / theirs
  if (ratio < LEAST_RATIO) failed += 1
  console.log(`${version} ${codec}: ${(mine / 1e6).toFixed(1)} million rows/s, DuckDB on one core ${(theirs / 1e6).toFixed(1)}: ` +
    `ratio ${ratio.toFixed(2)}, at least ${LEAST_RATIO} wanted`)
}
process.exit(failed === 0 ? 0 : 1)
