# Runs the checks of a description (see ../../checks.yaml) with mysql2.
#     ruby steps.rb DESCRIPTION.json
# One JSON line a check goes to standard output.
require 'digest'
require 'json'
require 'mysql2'

def shown(value)
  case value
  when String
    return "string #{value.bytesize} #{Digest::MD5.hexdigest(value)}" if value.bytesize > 200
    value.encoding == Encoding::BINARY ? "binary #{value.unpack1('H*')}" : "string #{value}"
  when Time then "time #{value.strftime('%F %T.%6N')}"
  when BigDecimal then "decimal #{value.to_s('F')}"
  else "#{value.class} #{value.inspect}"
  end
end

class Runner
  attr_reader :client

  def initialize(description)
    @d = description
    @saved = {}
  end

  def connect(options)
    @client&.close
    @client = nil
    flags = options['multi'] ? Mysql2::Client::MULTI_STATEMENTS : 0
    flags |= Mysql2::Client::COMPRESS if options['compress']
    tls = options['tls'] ? { sslca: @d['ca'], ssl_mode: :verify_ca } : {}
    @client = Mysql2::Client.new(
      host: @d['host'], port: @d['port'], username: options['user'] || @d['user'],
      password: options['password'] || @d['password'], database: options['database'] || @d['database'],
      encoding: 'utf8mb4', flags: flags, connect_timeout: 10, **tls
    )
  end

  def run(sql, args = nil)
    if args.nil?
      outcome(@client.query(sql, as: :array), @client)
    else
      statement = @client.prepare(sql)
      begin
        outcome(statement.execute(*args, as: :array), statement)
      ensure
        statement.close
      end
    end
  end

  def outcome(result, source)
    return { affected: source.affected_rows, id: source.last_id } if result.nil?

    { rows: result.to_a, columns: result.fields }
  end

  def step(step)
    done(step)
  rescue Mysql2::Error => e
    { error: [e.error_number, e.sql_state, e.error_number.zero? ? e.message : nil] }
  rescue StandardError => e
    { error: [e.class.name, e.message] }
  end

  def done(step)
    if step['connect'] then connect(step['connect']); {}
    elsif step['begin'] then run('BEGIN'); {}
    elsif step['commit'] then run('COMMIT'); {}
    elsif step['rollback'] then run('ROLLBACK'); {}
    elsif step['kill'] then kill
    elsif step['multi'] then several(step['multi'])
    elsif step['large'] then large(*step['large'])
    elsif step['copy'] then copy(step)
    elsif step['text'] then reported(run(step['text']), step)
    else reported(run(step['prepared'], step['args'].map { |one| argument(one) }), step)
    end
  end

  def argument(value)
    return value unless value.is_a?(Hash)

    value.key?('saved') ? @saved[value['saved']] : [value['bytes']].pack('H*')
  end

  def reported(found, step)
    found[:rows] = found[:rows].map { |row| row.map { |value| shown(value) } } if found[:rows]
    if step['save']
      @saved[step['save']] = found[:id]
      found[:id] = found[:id] != 0
    end
    found
  end

  def several(sql)
    found = [reported(outcome(@client.query(sql, as: :array), @client), {})]
    while @client.next_result
      found << reported(outcome(@client.store_result, @client), {})
    end
    found
  rescue Mysql2::Error => e
    (found || []) << { error: [e.error_number, e.sql_state] }
  end

  def kill
    id = run('SELECT CONNECTION_ID()')[:rows][0][0]
    other = Runner.new(@d)
    other.connect({})
    other.run("KILL #{id}")
    other.client.close
    begin
      run('SELECT 1')
      { lost: false }
    rescue Mysql2::Error
      { lost: true }
    end
  end

  def large(insert, select)
    value = ((0..255).to_a.pack('C*') * (@d['size'] / 256 + 1)).byteslice(0, @d['size'])
    run(insert, [value])
    { same: run(select)[:rows][0][0] == value }
  end

  def copy(step)
    rows = run(step['copy'], step['prepared'] ? [] : nil)[:rows]
    rows.each { |row| run(step['into'], row) }
    { rows: rows.length }
  end
end

if ARGV[0] == '--version'
  puts Mysql2::VERSION
  exit
end
description = JSON.parse(File.read(ARGV[0], encoding: 'utf-8'))
runner = Runner.new(description)
runner.connect({})
description['checks'].each do |check|
  steps = check['steps'].map { |step| runner.step(step) }
  puts JSON.generate({ check: check['name'], steps: steps })
  $stdout.flush
end
