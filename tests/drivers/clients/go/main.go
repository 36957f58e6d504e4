// Runs the checks of a description (see ../../checks.yaml) with go-sql-driver/mysql.
//
//	steps DESCRIPTION.json
//
// One JSON line a check goes to standard output.
package main

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

type object = map[string]any

type description struct {
	Host, User, Password, Database, CA string
	Port, Size                         int
	Checks                             []struct {
		Name  string
		Steps []object
	}
}

type runner struct {
	d     description
	db    *sql.DB
	conn  *sql.Conn
	tx    *sql.Tx
	saved map[string]int64
}

var background = context.Background()

func (r *runner) config(options object) (*mysql.Config, error) {
	text := func(name, fallback string) string {
		if value, ok := options[name].(string); ok {
			return value
		}
		return fallback
	}
	c := mysql.NewConfig()
	c.Net, c.Addr = "tcp", fmt.Sprintf("%s:%d", r.d.Host, r.d.Port)
	c.User, c.Passwd = text("user", r.d.User), text("password", r.d.Password)
	c.DBName = text("database", r.d.Database)
	c.MaxAllowedPacket = 0
	c.MultiStatements = options["multi"] == true
	if options["compress"] == true {
		if err := c.Apply(mysql.EnableCompression(true)); err != nil {
			return nil, err
		}
	}
	if options["tls"] == true {
		pem, err := os.ReadFile(r.d.CA)
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pem)
		c.TLS = &tls.Config{RootCAs: pool, ServerName: r.d.Host}
	}
	return c, nil
}

func (r *runner) connect(options object) error {
	r.close()
	config, err := r.config(options)
	if err != nil {
		return err
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return err
	}
	r.db = sql.OpenDB(connector)
	if r.conn, err = r.db.Conn(background); err != nil {
		r.conn = nil
	}
	return err
}

func (r *runner) close() {
	if r.tx != nil {
		r.tx.Rollback()
		r.tx = nil
	}
	if r.conn != nil {
		r.conn.Close()
		r.conn = nil
	}
	if r.db != nil {
		r.db.Close()
	}
}

func failed(err error) object {
	var server *mysql.MySQLError
	if errors.As(err, &server) {
		return object{"error": []any{server.Number, string(server.SQLState[:]), server.Message}}
	}
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn) {
		return object{"error": "bad connection"}
	}
	return object{"error": err.Error()}
}

func shown(value any) string {
	switch v := value.(type) {
	case []byte:
		if len(v) > 200 {
			return fmt.Sprintf("bytes %d %x", len(v), md5.Sum(v))
		}
		return fmt.Sprintf("bytes %x", v)
	case time.Time:
		return "time " + v.String()
	}
	return fmt.Sprintf("%T %v", value, value)
}

func yields(query string) bool {
	word := strings.ToUpper(strings.Fields(query)[0])
	return word == "SELECT" || word == "SHOW"
}

func (r *runner) queryer() interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
	ExecContext(context.Context, string, ...any) (sql.Result, error)
	PrepareContext(context.Context, string) (*sql.Stmt, error)
} {
	if r.tx != nil {
		return r.tx
	}
	return r.conn
}

// rows runs a query; a prepared one goes through PREPARE even without parameters.
func (r *runner) rows(query string, args []any, prepared bool) (*sql.Rows, func(), error) {
	if !prepared {
		rows, err := r.queryer().QueryContext(background, query)
		return rows, func() {}, err
	}
	statement, err := r.queryer().PrepareContext(background, query)
	if err != nil {
		return nil, nil, err
	}
	rows, err := statement.QueryContext(background, args...)
	return rows, func() { statement.Close() }, err
}

func read(rows *sql.Rows) (values [][]any, columns []any, err error) {
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, nil, err
	}
	for _, one := range types {
		nullable, known := one.Nullable()
		precision, scale, _ := one.DecimalSize()
		columns = append(columns, []any{one.Name(), one.DatabaseTypeName(), nullable, known, precision, scale, one.ScanType().String()})
	}
	for rows.Next() {
		row := make([]any, len(types))
		places := make([]any, len(types))
		for i := range row {
			places[i] = &row[i]
		}
		if err := rows.Scan(places...); err != nil {
			return nil, nil, err
		}
		values = append(values, row)
	}
	return values, columns, rows.Err()
}

func reported(values [][]any) [][]string {
	out := [][]string{}
	for _, row := range values {
		line := []string{}
		for _, value := range row {
			line = append(line, shown(value))
		}
		out = append(out, line)
	}
	return out
}

func (r *runner) run(query string, args []any, prepared bool, save string) any {
	if yields(query) {
		rows, done, err := r.rows(query, args, prepared)
		if err != nil {
			return failed(err)
		}
		defer done()
		defer rows.Close()
		values, columns, err := read(rows)
		if err != nil {
			return failed(err)
		}
		return object{"rows": reported(values), "columns": columns}
	}
	var result sql.Result
	var err error
	if prepared {
		var statement *sql.Stmt
		if statement, err = r.queryer().PrepareContext(background, query); err == nil {
			defer statement.Close()
			result, err = statement.ExecContext(background, args...)
		}
	} else {
		result, err = r.queryer().ExecContext(background, query)
	}
	if err != nil {
		return failed(err)
	}
	affected, _ := result.RowsAffected()
	id, _ := result.LastInsertId()
	if save != "" {
		r.saved[save] = id
		return object{"affected": affected, "id": id != 0}
	}
	return object{"affected": affected, "id": id}
}

func (r *runner) several(query string) any {
	rows, err := r.conn.QueryContext(background, query)
	if err != nil {
		return failed(err)
	}
	defer rows.Close()
	found := []any{}
	for {
		values, _, err := read(rows)
		if err != nil {
			return append(found, failed(err))
		}
		found = append(found, reported(values))
		if !rows.NextResultSet() {
			break
		}
	}
	if err := rows.Err(); err != nil {
		return append(found, failed(err))
	}
	return found
}

func (r *runner) argument(value any) any {
	switch v := value.(type) {
	case object:
		if name, ok := v["saved"].(string); ok {
			return r.saved[name]
		}
		data, _ := hex.DecodeString(v["bytes"].(string))
		return data
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return value
}

func (r *runner) kill() any {
	var id int64
	if err := r.conn.QueryRowContext(background, "SELECT CONNECTION_ID()").Scan(&id); err != nil {
		return failed(err)
	}
	other := &runner{d: r.d}
	if err := other.connect(object{}); err != nil {
		return failed(err)
	}
	defer other.close()
	other.conn.ExecContext(background, fmt.Sprintf("KILL %d", id))
	_, err := r.conn.ExecContext(background, "DO 1")
	return object{"lost": err != nil}
}

func (r *runner) large(insert, query string) any {
	value := make([]byte, r.d.Size)
	for i := range value {
		value[i] = byte(i)
	}
	if _, err := r.conn.ExecContext(background, insert, value); err != nil {
		return failed(err)
	}
	var back []byte
	if err := r.conn.QueryRowContext(background, query).Scan(&back); err != nil {
		return failed(err)
	}
	return object{"same": bytes.Equal(value, back)}
}

func (r *runner) copy(query, into string, prepared bool) any {
	rows, done, err := r.rows(query, nil, prepared)
	if err != nil {
		return failed(err)
	}
	values, _, err := read(rows)
	rows.Close()
	done()
	if err != nil {
		return failed(err)
	}
	for _, row := range values {
		if _, err := r.conn.ExecContext(background, into, row...); err != nil {
			return failed(err)
		}
	}
	return object{"rows": len(values)}
}

func (r *runner) step(step object) any {
	save, _ := step["save"].(string)
	var err error
	if r.conn == nil && step["connect"] == nil {
		return object{"error": "not connected"}
	}
	switch {
	case step["connect"] != nil:
		err = r.connect(step["connect"].(object))
	case step["begin"] != nil:
		r.tx, err = r.conn.BeginTx(background, nil)
	case step["commit"] != nil:
		if r.tx != nil {
			err = r.tx.Commit()
		}
		r.tx = nil
	case step["rollback"] != nil:
		if r.tx != nil {
			err = r.tx.Rollback()
		}
		r.tx = nil
	case step["kill"] != nil:
		return r.kill()
	case step["multi"] != nil:
		return r.several(step["multi"].(string))
	case step["large"] != nil:
		both := step["large"].([]any)
		return r.large(both[0].(string), both[1].(string))
	case step["copy"] != nil:
		return r.copy(step["copy"].(string), step["into"].(string), step["prepared"] == true)
	case step["text"] != nil:
		return r.run(step["text"].(string), nil, false, save)
	default:
		args := []any{}
		for _, one := range step["args"].([]any) {
			args = append(args, r.argument(one))
		}
		return r.run(step["prepared"].(string), args, true, save)
	}
	if err != nil {
		return failed(err)
	}
	return object{}
}

type silent struct{}

func (silent) Print(...any) {}

func main() {
	if os.Args[1] == "--version" {
		info, _ := debug.ReadBuildInfo()
		for _, one := range info.Deps {
			if strings.HasSuffix(one.Path, "go-sql-driver/mysql") {
				fmt.Println(one.Version)
			}
		}
		return
	}
	mysql.SetLogger(silent{})
	text, err := os.ReadFile(os.Args[1])
	r := &runner{saved: map[string]int64{}}
	if err == nil {
		err = json.Unmarshal(text, &r.d)
	}
	if err == nil {
		err = r.connect(object{})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	out := json.NewEncoder(os.Stdout)
	for _, check := range r.d.Checks {
		steps := []any{}
		for _, one := range check.Steps {
			steps = append(steps, r.step(one))
		}
		out.Encode(object{"check": check.Name, "steps": steps})
	}
	r.close()
}
