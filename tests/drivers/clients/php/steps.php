<?php
// Runs the checks of a description (see ../../checks.yaml) with mysqli or PDO.
//     php steps.php mysqli|pdo DESCRIPTION.json
// One JSON line a check goes to standard output.

class Unsupported extends Exception {}

function shown($value): string
{
    if (is_string($value) && (strlen($value) > 200 || !mb_check_encoding($value, 'UTF-8'))) {
        return 'string ' . strlen($value) . ' ' . md5($value);
    }
    return gettype($value) . ' ' . var_export($value, true);
}

class ByMysqli
{
    public ?mysqli $link = null;

    public function __construct(public array $d)
    {
        mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
    }

    public function version(): string
    {
        return phpversion('mysqli');
    }

    public function connect(array $options): void
    {
        $this->link = null;
        $link = mysqli_init();
        $flags = ($options['compress'] ?? false) ? MYSQLI_CLIENT_COMPRESS : 0;
        if ($options['tls'] ?? false) {
            $link->ssl_set(null, null, $this->d['ca'], null, null);
            $flags |= MYSQLI_CLIENT_SSL | MYSQLI_CLIENT_SSL_VERIFY_SERVER_CERT;
        }
        $link->real_connect(
            $this->d['host'], $options['user'] ?? $this->d['user'], $options['password'] ?? $this->d['password'],
            $options['database'] ?? $this->d['database'], $this->d['port'], null, $flags,
        );
        $link->set_charset('utf8mb4');
        $this->link = $link;
    }

    public function run(string $sql, ?array $args): array
    {
        if ($args === null) {
            $result = $this->link->query($sql);
            return $this->outcome($result, $this->link);
        }
        $statement = $this->link->prepare($sql);
        $statement->execute($args);
        $found = $this->outcome($statement->get_result(), $statement);
        $statement->close();
        return $found;
    }

    private function outcome(mysqli_result|bool $result, $source): array
    {
        if (!$result instanceof mysqli_result) {
            return ['affected' => $source->affected_rows, 'id' => $source->insert_id];
        }
        $columns = [];
        foreach ($result->fetch_fields() as $one) {
            $columns[] = [$one->name, $one->table, $one->db, $one->type, $one->length, $one->flags, $one->decimals, $one->charsetnr];
        }
        $rows = $result->fetch_all(MYSQLI_NUM);
        $result->free();
        return ['rows' => $rows, 'columns' => $columns];
    }

    public function several(string $sql): array
    {
        $found = [];
        try {
            $this->link->multi_query($sql);
            do {
                $found[] = $this->outcome($this->link->store_result(), $this->link);
            } while ($this->link->more_results() && $this->link->next_result());
        } catch (mysqli_sql_exception $error) {
            $found[] = ['error' => $this->error($error)];
        }
        return $found;
    }

    public function begin(): void { $this->link->begin_transaction(); }
    public function commit(): void { $this->link->commit(); }
    public function rollback(): void { $this->link->rollback(); }
    public function error(Throwable $error): array
    {
        return [$error->getCode(), $error instanceof mysqli_sql_exception ? $error->getSqlState() : $error->getMessage()];
    }
}

class ByPdo
{
    public ?PDO $link = null;

    public function __construct(public array $d) {}

    public function version(): string
    {
        return phpversion('pdo_mysql');
    }

    public function connect(array $options): void
    {
        $this->link = null;
        $d = $this->d;
        $database = $options['database'] ?? $d['database'];
        $set = [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION, PDO::ATTR_EMULATE_PREPARES => false];
        if ($options['compress'] ?? false) $set[PDO::MYSQL_ATTR_COMPRESS] = true;
        if ($options['tls'] ?? false) $set[PDO::MYSQL_ATTR_SSL_CA] = $d['ca'];
        $this->link = new PDO(
            "mysql:host={$d['host']};port={$d['port']};dbname=$database;charset=utf8mb4",
            $options['user'] ?? $d['user'], $options['password'] ?? $d['password'], $set,
        );
    }

    public function run(string $sql, ?array $args): array
    {
        if ($args === null) {
            $statement = $this->link->query($sql);
        } else {
            $statement = $this->link->prepare($sql);
            foreach ($args as $at => $value) {
                $kind = is_int($value) ? PDO::PARAM_INT : (is_null($value) ? PDO::PARAM_NULL : PDO::PARAM_STR);
                $statement->bindValue($at + 1, $value, $kind);
            }
            $statement->execute();
        }
        return $this->outcome($statement);
    }

    private function outcome(PDOStatement $statement): array
    {
        if ($statement->columnCount() === 0) {
            return ['affected' => $statement->rowCount(), 'id' => $this->link->lastInsertId()];
        }
        $columns = [];
        for ($at = 0; $at < $statement->columnCount(); $at++) $columns[] = $statement->getColumnMeta($at);
        return ['rows' => $statement->fetchAll(PDO::FETCH_NUM), 'columns' => $columns];
    }

    public function several(string $sql): array
    {
        $found = [];
        $this->link->setAttribute(PDO::ATTR_EMULATE_PREPARES, true);
        try {
            $statement = $this->link->query($sql);
            do {
                $found[] = $this->outcome($statement);
            } while ($statement->nextRowset());
        } catch (PDOException $error) {
            $found[] = ['error' => $this->error($error)];
        }
        $this->link->setAttribute(PDO::ATTR_EMULATE_PREPARES, false);
        return $found;
    }

    public function begin(): void { $this->link->beginTransaction(); }
    public function commit(): void { if ($this->link->inTransaction()) $this->link->commit(); }
    public function rollback(): void { $this->link->rollBack(); }
    public function error(Throwable $error): array
    {
        return $error instanceof PDOException ? [$error->errorInfo[1] ?? $error->getMessage(), $error->errorInfo[0] ?? null] : [$error->getMessage()];
    }
}

class Runner
{
    private array $saved = [];

    public function __construct(private ByMysqli|ByPdo $driver) {}

    public function step(array $step): array
    {
        try {
            return $this->done($step);
        } catch (Unsupported) {
            return ['unsupported' => true];
        } catch (Throwable $error) {
            return ['error' => $this->driver->error($error)];
        }
    }

    private function done(array $step): array
    {
        $driver = $this->driver;
        if (isset($step['connect'])) { $driver->connect($step['connect']); return []; }
        foreach (['begin', 'commit', 'rollback'] as $name) {
            if (isset($step[$name])) { $driver->$name(); return []; }
        }
        if (isset($step['kill'])) return $this->kill();
        if (isset($step['multi'])) return array_map(fn ($one) => $this->reported($one, $step), $driver->several($step['multi']));
        if (isset($step['large'])) return $this->large(...$step['large']);
        if (isset($step['copy'])) return $this->copied($step);
        if (isset($step['text'])) return $this->reported($driver->run($step['text'], null), $step);
        return $this->reported($driver->run($step['prepared'], array_map($this->argument(...), $step['args'])), $step);
    }

    private function argument($value)
    {
        if (!is_array($value)) return $value;
        return isset($value['saved']) ? $this->saved[$value['saved']] : hex2bin($value['bytes']);
    }

    private function reported(array $found, array $step): array
    {
        if (isset($found['rows'])) $found['rows'] = array_map(fn ($row) => array_map(shown(...), $row), $found['rows']);
        if (isset($step['save'])) {
            $this->saved[$step['save']] = $found['id'];
            $found['id'] = (bool) $found['id'];
        }
        return $found;
    }

    private function kill(): array
    {
        $id = $this->driver->run('SELECT CONNECTION_ID()', null)['rows'][0][0];
        $other = new ($this->driver::class)($this->driver->d);
        $other->connect([]);
        $other->run("KILL $id", null);
        try {
            $this->driver->run('SELECT 1', null);
        } catch (Throwable) {
            return ['lost' => true];
        }
        return ['lost' => false];
    }

    private function large(string $insert, string $select): array
    {
        $size = $this->driver->d['size'];
        $value = substr(str_repeat(implode('', array_map(chr(...), range(0, 255))), intdiv($size, 256) + 1), 0, $size);
        $this->driver->run($insert, [$value]);
        return ['same' => $this->driver->run($select, null)['rows'][0][0] === $value];
    }

    private function copied(array $step): array
    {
        $rows = $this->driver->run($step['copy'], ($step['prepared'] ?? false) ? [] : null)['rows'];
        foreach ($rows as $row) $this->driver->run($step['into'], $row);
        return ['rows' => count($rows)];
    }
}

error_reporting(E_ALL & ~E_WARNING);
ini_set('memory_limit', '1G');
[$_, $name, $path] = $argv;
$driver = $name === 'pdo' ? new ByPdo(json_decode(file_get_contents($path), true)) : new ByMysqli(json_decode(file_get_contents($path), true));
$driver->connect([]);
$runner = new Runner($driver);
foreach ($driver->d['checks'] as $check) {
    $steps = array_map($runner->step(...), $check['steps']);
    echo json_encode(['check' => $check['name'], 'steps' => $steps], JSON_INVALID_UTF8_SUBSTITUTE | JSON_PARTIAL_OUTPUT_ON_ERROR), "\n";
}
