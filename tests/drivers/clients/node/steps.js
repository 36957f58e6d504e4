// Runs the checks of a description (see ../../checks.yaml) with one of Node's drivers.
//   node steps.js mysql2|mariadb DESCRIPTION.json
// Modules are looked for in $NODE_PATH. One JSON line a check goes to standard output.
'use strict';
const crypto = require('crypto');
const fs = require('fs');

class Unsupported extends Error {}

function shown(value) {
  if (Buffer.isBuffer(value)) {
    return value.length > 200 ? `buffer ${value.length} ${md5(value)}` : 'buffer ' + value.toString('hex');
  }
  if (typeof value === 'string') return value.length > 200 ? `string ${value.length} ${md5(value)}` : 'string ' + value;
  if (value instanceof Date) return 'date ' + (isNaN(value) ? 'invalid' : value.toISOString());
  if (value !== null && typeof value === 'object') return 'object ' + JSON.stringify(value);
  return typeof value + ' ' + String(value);
}

const md5 = (value) => crypto.createHash('md5').update(value).digest('hex');

class Mysql2 {
  constructor(description) {
    this.d = description;
    this.module = require('mysql2/promise');
  }

  async connect(options) {
    if (this.connection) this.connection.destroy();
    this.connection = await this.module.createConnection({
      ...where(this.d, options),
      supportBigNumbers: true,
      bigNumberStrings: true,
      compress: Boolean(options.compress),
      multipleStatements: Boolean(options.multi),
      ssl: options.tls ? { ca: fs.readFileSync(this.d.ca) } : undefined,
    });
    this.connection.on('error', () => {});
  }

  async run(sql, args, prepared) {
    const [rows, fields] = prepared
      ? await this.connection.execute({ sql, rowsAsArray: true }, args)
      : await this.connection.query({ sql, rowsAsArray: true }, args);
    return outcome(rows, fields);
  }

  async several(sql) {
    const [results] = await this.connection.query({ sql, rowsAsArray: true });
    return results.map((one) => (Array.isArray(one) ? { rows: one } : { affected: one.affectedRows }));
  }

  native(value) {
    // JSON comes as what it says
    return value !== null && typeof value === 'object' && !Buffer.isBuffer(value) && !(value instanceof Date)
      ? JSON.stringify(value) : value;
  }

  end() {
    return this.connection.end();
  }
}

class MariaDB extends Mysql2 {
  constructor(description) {
    super(description);
    this.module = require('mariadb');
  }

  async connect(options) {
    if (this.connection) this.connection.destroy();
    this.connection = await this.module.createConnection({
      ...where(this.d, options),
      charset: 'utf8mb4',
      allowPublicKeyRetrieval: true,
      bigIntAsNumber: false,
      compress: Boolean(options.compress),
      multipleStatements: Boolean(options.multi),
      ssl: options.tls ? { ca: fs.readFileSync(this.d.ca) } : undefined,
      connectTimeout: 10000,
    });
    this.connection.on('error', () => {});
  }

  async run(sql, args, prepared) {
    const options = { sql, rowsAsArray: true, metaAsArray: true };
    const found = prepared
      ? await this.connection.execute(options, args) : await this.connection.query(options, args);
    return Array.isArray(found) ? outcome(found[0], found[1]) : outcome(found);
  }

  async several(sql) {
    const results = await this.connection.query({ sql, rowsAsArray: true });
    return results.map((one) => (Array.isArray(one) ? { rows: one } : { affected: one.affectedRows }));
  }
}

function where(d, options) {
  return {
    host: d.host,
    port: d.port,
    user: options.user || d.user,
    password: options.password || d.password,
    database: options.database || d.database,
  };
}

function outcome(rows, fields) {
  if (!Array.isArray(rows)) return { affected: rows.affectedRows, id: rows.insertId, info: rows.info };
  const columns = (fields || []).map((one) => [
    typeof one.name === 'function' ? one.name() : one.name, one.columnType, one.type, one.columnLength, one.flags,
    one.decimals ?? one.scale,
  ]);
  return { rows, columns };
}

class Runner {
  constructor(driver) {
    this.driver = driver;
    this.saved = {};
  }

  async step(step) {
    try {
      return await this.done(step);
    } catch (error) {
      if (error instanceof Unsupported) return { unsupported: true };
      return { error: [error.errno ?? error.code ?? error.message, error.sqlState ?? null] };
    }
  }

  async done(step) {
    const driver = this.driver;
    if (step.connect) { await driver.connect(step.connect); return {}; }
    if (step.begin) { await driver.connection.beginTransaction(); return {}; }
    if (step.commit) { await driver.connection.commit(); return {}; }
    if (step.rollback) { await driver.connection.rollback(); return {}; }
    if (step.kill) return this.kill();
    if (step.multi) return (await driver.several(step.multi)).map((one) => this.reported(one, step));
    if (step.large) return this.large(...step.large);
    if (step.copy) return this.copy(step);
    if (step.text) return this.reported(await driver.run(step.text, undefined, false), step);
    const args = step.args.map((one) => this.argument(one));
    return this.reported(await driver.run(step.prepared, args, true), step);
  }

  argument(value) {
    if (value === null || typeof value !== 'object') return value;
    return value.saved ? this.saved[value.saved] : Buffer.from(value.bytes, 'hex');
  }

  reported(found, step) {
    if (found.rows) found.rows = found.rows.map((row) => row.map(shown));
    if (step.save) {
      this.saved[step.save] = found.id;
      found.id = Boolean(found.id);
    }
    return found;
  }

  async kill() {
    const { rows } = await this.driver.run('SELECT CONNECTION_ID()', undefined, false);
    const other = new this.driver.constructor(this.driver.d);
    await other.connect({});
    await other.run(`KILL ${rows[0][0]}`, undefined, false);
    await other.end();
    try {
      await this.driver.run('SELECT 1', undefined, false);
    } catch (error) {
      return { lost: true }; // how it is noticed depends on who is quicker
    }
    return { lost: false };
  }

  async large(insert, select) {
    const value = Buffer.alloc(this.driver.d.size);
    for (let at = 0; at < value.length; at++) value[at] = at & 255;
    await this.driver.run(insert, [value], true);
    const { rows } = await this.driver.run(select, undefined, false);
    return { same: value.equals(rows[0][0]) };
  }

  async copy(step) {
    const { rows } = await this.driver.run(step.copy, step.prepared ? [] : undefined, Boolean(step.prepared));
    for (const row of rows) {
      const values = row.map((one) => this.driver.native(one));
      await this.driver.run(step.into, values, Boolean(step.prepared));
    }
    return { rows: rows.length };
  }
}

async function main() {
  const description = JSON.parse(fs.readFileSync(process.argv[3], 'utf8'));
  const driver = new { mysql2: Mysql2, mariadb: MariaDB }[process.argv[2]](description);
  await driver.connect({});
  const runner = new Runner(driver);
  for (const check of description.checks) {
    const steps = [];
    for (const step of check.steps) steps.push(await runner.step(step));
    const line = JSON.stringify({ check: check.name, steps },
      (_, value) => (typeof value === 'bigint' ? value.toString() : value));
    process.stdout.write(line + '\n');
  }
  driver.connection.destroy();
}

main().then(() => process.exit(0), (error) => { console.error(error); process.exit(1); });
