// Parquet files by DuckDB and hyparquet-writer, over types, encodings, codecs, nulls and sizes of row groups, and their values: as
// DuckDB reads its own, and as they were given to hyparquet-writer. Used by make.mjs beside it and by tests/judges/parquet.
import path from 'node:path'
import zlib from 'node:zlib'

// Columns of DuckDB by name: expressions of the row number i. Values repeat where a dictionary should be chosen.
const columns = {
  boolean: `i % 3 = 0`,
  tinyint: `(i * 37 % 256 - 128)::tinyint`,
  smallint: `(i * 7919 % 65536 - 32768)::smallint`,
  integer: `((hash(i) % 4294967296)::bigint - 2147483648)::integer`,
  bigint: `(hash(i) // 2)::bigint * (case when i % 2 = 0 then 1 else -1 end)`,
  utinyint: `(i % 256)::utinyint`,
  usmallint: `(i * 31 % 65536)::usmallint`,
  uinteger: `(hash(i) % 4294967296)::uinteger`,
  ubigint: `hash(i)::ubigint`,
  rising: `(1000000000 + i * 3)::bigint`,
  few: `(i % 5 * 1000)::bigint`,
  float: `(hash(i) % 100000 / 7.0 - 5000)::float`,
  double: `case when i = 1 then 'nan' when i = 2 then '-inf' when i = 3 then '-0.0' else hash(i)::double / 3e9 end::double`,
  halves: `(i % 9)::double / 2`,
  decimal_4: `((i * 13 % 9999) / 100.0)::decimal(4, 2)`,
  decimal_9: `((hash(i) % 999999999) / 1000.0)::decimal(9, 3)`,
  decimal_18: `((hash(i) % 999999999999)::bigint / 10000.0 - 5e7)::decimal(18, 4)`,
  decimal_38: `((hash(i) % 999999999999999)::decimal(38, 6) - 5e14::decimal(38, 6)) / 4::decimal(3,0)`,
  date: `date '1890-01-01' + (i * 997 % 90000)::integer`,
  time: `time '00:00:00' + to_microseconds((i * 7777777777 % 86400000000)::bigint)`,
  timestamp: `timestamp '1900-01-01' + to_microseconds((hash(i) % 9000000000000000)::bigint)`,
  timestamp_ms: `(timestamp '1950-01-01' + to_milliseconds((hash(i) % 3000000000000)::bigint))::timestamp_ms`,
  timestamp_ns: `make_timestamp_ns((hash(i) % 4000000000000000000)::bigint)`,
  timestamptz: `(timestamp '2000-01-01' + to_seconds((i * 86399)::bigint))::timestamptz`,
  text: `case i % 4 when 0 then '' when 1 then 'line\n' || i when 2 then 'ÅngströmΩ🙂' || (i % 11) else repeat('x', (i % 40)::integer) end`,
  word: `['red', 'green', 'blue', 'sehr langes Wort'][i % 4 + 1]`,
  enumeration: `(['a', 'b', 'c'][i % 3 + 1])::enum_of_three`,
  uuid: `md5(i::varchar)::uuid`,
}

const nullable = (expression, nulls) =>
  nulls === 'none' ? expression : nulls === 'some' ? `case when hash(i, 5) % 4 = 0 then null else ${expression} end`
    : nulls === 'runs' ? `case when i // 40 % 2 = 0 then null else ${expression} end`
    : `case when true then null else ${expression} end`

async function write_by_duckdb(connection, file, { rows, codec, version, group, nulls }) {
  const list = Object.entries(columns).map(([name, sql]) => `${nullable(sql, nulls)} as "${name}"`).join(', ')
  // 2048 rows is the least that DuckDB makes a row group of.
  await connection.run(`copy (select ${list} from range(${rows}) r(i)) to '${file}'
    (format parquet, codec ${codec}, parquet_version ${version}, row_group_size ${group})`)
}

const duckdb_files = (rows) => {
  const files = []
  for (const version of ['v1', 'v2'])
    for (const codec of ['uncompressed', 'snappy', 'gzip', 'zstd', 'lz4_raw'])
      files.push([`duckdb-${version}-${codec}`, { rows, codec, version, group: 122880, nulls: codec === 'snappy' ? 'none' : 'some' }])
  files.push(['duckdb-groups', { rows: rows * 3, codec: 'zstd', version: 'v2', group: 2048, nulls: 'runs' }])
  files.push(['duckdb-groups-v1', { rows: rows * 3, codec: 'snappy', version: 'v1', group: 2048, nulls: 'runs' }])
  files.push(['duckdb-nulls', { rows, codec: 'snappy', version: 'v1', group: 122880, nulls: 'all' }])
  files.push(['duckdb-nulls-v2', { rows, codec: 'gzip', version: 'v2', group: 122880, nulls: 'all' }])
  files.push(['duckdb-one-row', { rows: 1, codec: 'zstd', version: 'v1', group: 122880, nulls: 'none' }])
  files.push(['duckdb-no-row', { rows: 0, codec: 'zstd', version: 'v2', group: 122880, nulls: 'none' }])
  return files
}

// Columns for hyparquet-writer: [name, type, encoding, value of a row].
const small = (i) => (i * 2654435761) % 1000003
const hyparquet_columns = [
  ['plain_int32', 'INT32', 'PLAIN', (i) => small(i) - 500000],
  ['plain_int64', 'INT64', 'PLAIN', (i) => BigInt(small(i)) * -9000000000n],
  ['plain_float', 'FLOAT', 'PLAIN', (i) => Math.fround(small(i) / 7)],
  ['plain_double', 'DOUBLE', 'PLAIN', (i) => small(i) / 7],
  ['plain_boolean', 'BOOLEAN', 'PLAIN', (i) => i % 3 === 0],
  ['plain_text', 'STRING', 'PLAIN', (i) => 'text ' + small(i)],
  ['dictionary_text', 'STRING', undefined, (i) => 'word ' + i % 7],
  ['dictionary_double', 'DOUBLE', undefined, (i) => (i % 7) / 4],
  ['dictionary_int64', 'INT64', undefined, (i) => BigInt(i % 3)],
  ['rle_boolean', 'BOOLEAN', 'RLE', (i) => i % 50 < 25],
  ['delta_int32', 'INT32', 'DELTA_BINARY_PACKED', (i) => i * 1000 - small(i)],
  ['delta_int64', 'INT64', 'DELTA_BINARY_PACKED', (i) => (i % 2 === 0 ? 1n : -1n) * BigInt(small(i)) * 9000000000000n],
  ['delta_length_text', 'STRING', 'DELTA_LENGTH_BYTE_ARRAY', (i) => 'ä'.repeat(i % 9) + i],
  ['delta_text', 'STRING', 'DELTA_BYTE_ARRAY', (i) => 'a common prefix ' + String(i).padStart(6, '0')],
  ['split_float', 'FLOAT', 'BYTE_STREAM_SPLIT', (i) => Math.fround(small(i) / 11)],
  ['split_double', 'DOUBLE', 'BYTE_STREAM_SPLIT', (i) => small(i) / 11],
  ['split_int32', 'INT32', 'BYTE_STREAM_SPLIT', (i) => small(i)],
  ['split_int64', 'INT64', 'BYTE_STREAM_SPLIT', (i) => BigInt(small(i)) * -77n],
  ['timestamp', 'TIMESTAMP', undefined, (i) => new Date(1.6e12 + small(i) * 1000)],
  ['uuid', 'UUID', undefined, (i) => '00112233-4455-6677-8899-' + String(i).padStart(12, '0')],
]

const gzip = (bytes) => new Uint8Array(zlib.gzipSync(bytes))

// Returns the values, a line per row.
function write_by_hyparquet(writer, file, { rows, codec, group, nulls, page }) {
  const columnData = hyparquet_columns.map(([name, type, encoding, value]) => ({
    name, type, encoding, nullable: nulls !== 'none',
    data: Array.from({ length: rows }, (_, i) =>
      nulls === 'all' || (nulls === 'some' && small(i + 3) % 4 === 0) || (nulls === 'runs' && i % 80 < 40) ? null : value(i)),
  }))
  writer.parquetWriteFile({
    filename: file, columnData, codec, rowGroupSize: group, pageSize: page, compressors: { ...writer.compressors, GZIP: gzip },
  })
  const shown = (type, value) => value === null ? 'null' : type === 'BOOLEAN' ? String(Number(value)) : type === 'FLOAT' ? float_bits(value)
    : type === 'DOUBLE' ? double_bits(value) : type === 'TIMESTAMP' ? String(BigInt(value.getTime()) * 1000000n)
    : typeof value === 'string' ? JSON.stringify(value) : String(value)
  return Array.from({ length: rows }, (_, i) =>
    columnData.map(({ type, data }) => shown(type, data[i])).join('\t') + '\n').join('')
}

const hyparquet_files = (rows) => {
  const files = []
  for (const codec of ['UNCOMPRESSED', 'SNAPPY', 'GZIP'])
    for (const nulls of ['none', 'some', 'runs'])
      files.push([`hyparquet-${codec.toLowerCase()}-${nulls}`, { rows, codec, nulls, group: 1000000, page: 1048576 }])
  files.push(['hyparquet-groups', { rows, codec: 'SNAPPY', nulls: 'some', group: 23, page: 1048576 }])
  files.push(['hyparquet-pages', { rows: rows * 2, codec: 'SNAPPY', nulls: 'some', group: 1000000, page: 200 }])
  files.push(['hyparquet-pages-required', { rows: rows * 2, codec: 'GZIP', nulls: 'none', group: 500, page: 300 }])
  files.push(['hyparquet-nulls', { rows, codec: 'SNAPPY', nulls: 'all', group: 1000000, page: 1048576 }])
  files.push(['hyparquet-one-row', { rows: 1, codec: 'SNAPPY', nulls: 'none', group: 1000000, page: 1048576 }])
  return files
}

/** Writes those files whose name `wanted` accepts to the folder, and returns their names and values. */
export async function write_files({ connection, hyparquet, folder, rows, wanted = () => true }) {
  await connection.run(`create type if not exists enum_of_three as enum ('a', 'b', 'c')`)
  await connection.run(`set timezone = 'UTC'`)
  const files = []
  for (const [name, options] of duckdb_files(rows)) {
    if (!wanted(name)) continue
    const file = path.join(folder, name + '.parquet')
    await write_by_duckdb(connection, file, options)
    files.push([name, await values_by_duckdb(connection, file)])
  }
  for (const [name, options] of hyparquet_files(rows)) {
    if (!wanted(name)) continue
    files.push([name, write_by_hyparquet(hyparquet, path.join(folder, name + '.parquet'), options)])
  }
  return files
}

const view = new DataView(new ArrayBuffer(8))
const double_bits = (value) => {
  if (Number.isNaN(value)) return 'nan'
  view.setFloat64(0, value)
  return view.getBigUint64(0).toString(16).padStart(16, '0')
}
const float_bits = (value) => {
  if (Number.isNaN(value)) return 'nan'
  view.setFloat32(0, value)
  return view.getUint32(0).toString(16).padStart(8, '0')
}

// How a column of DuckDB's is fetched, and what is printed for a value.
function printing(name, type) {
  const column = `"${name}"`
  if (type === 'BOOLEAN') return [`${column}::integer`, String]
  if (type === 'FLOAT') return [column, float_bits]
  if (type === 'DOUBLE') return [column, double_bits]
  if (type.startsWith('DECIMAL')) return [`${column}::varchar`, (text) => double_bits(Number(text))]
  if (type === 'DATE') return [`(${column} - date '1970-01-01')::varchar`, String]
  if (type === 'TIME') return [`(epoch_us(${column})::hugeint * 1000)::varchar`, String]
  if (type.startsWith('TIMESTAMP')) return [`epoch_ns(${column})::varchar`, String]
  if (type.endsWith('INT') || type.endsWith('INTEGER')) return [`${column}::varchar`, String]
  return [`${column}::varchar`, (text) => JSON.stringify(text)]
}

/** The values of a file as DuckDB reads it: a line per row, as test/parquet_values.cpp prints them. */
export async function values_by_duckdb(connection, file) {
  const described = await connection.runAndReadAll(`describe select * from read_parquet('${file}')`)
  const prints = described.getRows().map(([name, type]) => printing(name, type))
  const reader = await connection.runAndReadAll(
    `select ${prints.map(([sql]) => sql).join(', ')} from read_parquet('${file}')`)
  return reader.getRows().map((row) => row.map((value, i) => value === null ? 'null' : prints[i][1](value)).join('\t') + '\n').join('')
}

/** DuckDB on one thread, and hyparquet-writer, from the node_modules of a folder. */
export async function load_writers(folder) {
  const from = (name) => import(path.join(folder, 'node_modules', name))
  const { DuckDBInstance } = await from('@duckdb/node-api/lib/index.js')
  const instance = await DuckDBInstance.create(':memory:', { threads: '1' })
  const connection = await instance.connect()
  const hyparquet = await from('hyparquet-writer/src/node.js')
  return { connection, hyparquet }
}
