import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;

/**
 * Runs the checks of a description (see ../../checks.yaml) with Connector/J or MariaDB Connector/J.
 *
 * <pre>java -cp … Steps mysql|mariadb DESCRIPTION.json</pre>
 *
 * One JSON line a check goes to standard output.
 */
public final class Steps {
    private final Map<String, Object> d;
    private final String scheme;
    private final Map<String, Object> saved = new HashMap<>();
    private Connection connection;

    private Steps(Map<String, Object> d, String scheme) {
        this.d = d;
        this.scheme = scheme;
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments[1].equals("--version")) {
            System.out.println(DriverManager.getDriver("jdbc:" + arguments[0] + "://localhost/").getMajorVersion() + "."
                + DriverManager.getDriver("jdbc:" + arguments[0] + "://localhost/").getMinorVersion());
            return;
        }
        String text = Files.readString(Path.of(arguments[1]));
        Map<String, Object> d = map(new Json(text).value());
        Steps steps = new Steps(d, arguments[0]);
        steps.connect(Map.of());
        for (Object one : (List<?>) d.get("checks")) {
            Map<String, Object> check = map(one);
            List<Object> found = new ArrayList<>();
            for (Object step : (List<?>) check.get("steps")) found.add(steps.step(map(step)));
            Map<String, Object> line = new LinkedHashMap<>();
            line.put("check", check.get("name"));
            line.put("steps", found);
            System.out.write((Json.text(line) + "\n").getBytes(StandardCharsets.UTF_8));
            System.out.flush();
        }
        System.exit(0);
    }

    private void connect(Map<String, Object> options) throws SQLException {
        close();
        Properties properties = new Properties();
        properties.setProperty("user", (String) options.getOrDefault("user", d.get("user")));
        properties.setProperty("password", (String) options.getOrDefault("password", d.get("password")));
        properties.setProperty("allowPublicKeyRetrieval", "true");
        properties.setProperty("useServerPrepStmts", "true");
        properties.setProperty("connectTimeout", "10000");
        properties.setProperty("socketTimeout", "60000");
        if (options.containsKey("multi")) properties.setProperty("allowMultiQueries", "true");
        if (options.containsKey("compress")) properties.setProperty("useCompression", "true");
        if (scheme.equals("mysql")) {
            properties.setProperty("sslMode", options.containsKey("tls") ? "VERIFY_CA" : "DISABLED");
            properties.setProperty("trustCertificateKeyStoreUrl", "file:" + d.get("truststore"));
            properties.setProperty("trustCertificateKeyStorePassword", "changeit");
            properties.setProperty("yearIsDateType", "false");
        } else {
            properties.setProperty("sslMode", options.containsKey("tls") ? "verify-ca" : "disable");
            properties.setProperty("serverSslCert", (String) d.get("ca"));
        }
        String database = (String) options.getOrDefault("database", d.get("database"));
        connection = DriverManager.getConnection(
            "jdbc:" + scheme + "://" + d.get("host") + ":" + d.get("port") + "/" + database, properties);
    }

    private void close() {
        try {
            if (connection != null) connection.close();
        } catch (SQLException ignored) {
            // it may be gone
        }
        connection = null;
    }

    private Object step(Map<String, Object> step) {
        try {
            return done(step);
        } catch (SQLException error) {
            return failed(error);
        } catch (Exception error) {
            return Map.of("error", error.toString());
        }
    }

    private static Object failed(SQLException error) {
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("error", Arrays.asList((long) error.getErrorCode(), error.getSQLState(), error.getClass().getSimpleName()));
        return found;
    }

    private Object done(Map<String, Object> step) throws Exception {
        if (step.containsKey("connect")) {
            connect(map(step.get("connect")));
        } else if (step.containsKey("begin")) {
            connection.setAutoCommit(false);
        } else if (step.containsKey("commit")) {
            if (!connection.getAutoCommit()) connection.commit();
            connection.setAutoCommit(true);
        } else if (step.containsKey("rollback")) {
            connection.rollback();
            connection.setAutoCommit(true);
        } else if (step.containsKey("kill")) {
            return kill();
        } else if (step.containsKey("multi")) {
            return several((String) step.get("multi"));
        } else if (step.containsKey("large")) {
            List<?> both = (List<?>) step.get("large");
            return large((String) both.get(0), (String) both.get(1));
        } else if (step.containsKey("copy")) {
            return copy((String) step.get("copy"), (String) step.get("into"), step.containsKey("prepared"));
        } else if (step.containsKey("text")) {
            try (Statement statement = connection.createStatement()) {
                boolean rows = statement.execute((String) step.get("text"), Statement.RETURN_GENERATED_KEYS);
                return outcome(statement, rows, (String) step.get("save"));
            }
        } else {
            try (PreparedStatement statement = connection.prepareStatement(
                    (String) step.get("prepared"), Statement.RETURN_GENERATED_KEYS)) {
                int at = 0;
                for (Object one : (List<?>) step.get("args")) statement.setObject(++at, argument(one));
                return outcome(statement, statement.execute(), (String) step.get("save"));
            }
        }
        return Map.of();
    }

    private Object argument(Object value) {
        if (!(value instanceof Map)) return value;
        Map<String, Object> named = map(value);
        return named.containsKey("saved") ? saved.get(named.get("saved"))
            : HexFormat.of().parseHex((String) named.get("bytes"));
    }

    private Object outcome(Statement statement, boolean rows, String save) throws Exception {
        Map<String, Object> found = new LinkedHashMap<>();
        if (rows) {
            try (ResultSet result = statement.getResultSet()) {
                found.put("rows", rows(result));
                found.put("columns", columns(result.getMetaData()));
            }
            return found;
        }
        found.put("affected", (long) statement.getUpdateCount());
        try (ResultSet keys = statement.getGeneratedKeys()) {
            List<Object> ids = new ArrayList<>();
            while (keys.next()) ids.add(keys.getObject(1));
            if (save != null) {
                saved.put(save, ids.get(0));
                found.put("id", !ids.isEmpty());
            } else {
                found.put("id", ids.toString());
            }
        }
        return found;
    }

    private static List<Object> columns(ResultSetMetaData meta) throws SQLException {
        List<Object> columns = new ArrayList<>();
        for (int at = 1; at <= meta.getColumnCount(); at++) {
            columns.add(Arrays.asList(meta.getColumnLabel(at), meta.getColumnName(at), meta.getTableName(at),
                meta.getCatalogName(at), meta.getColumnTypeName(at), meta.getColumnClassName(at), (long) meta.getPrecision(at),
                (long) meta.getScale(at), (long) meta.isNullable(at), meta.isAutoIncrement(at), meta.isSigned(at)));
        }
        return columns;
    }

    private static List<Object> rows(ResultSet result) throws Exception {
        List<Object> rows = new ArrayList<>();
        while (result.next()) {
            List<Object> row = new ArrayList<>();
            for (int at = 1; at <= result.getMetaData().getColumnCount(); at++) {
                try {
                    row.add(shown(result.getObject(at)));
                } catch (SQLException error) {
                    row.add("error " + error.getMessage());
                }
            }
            rows.add(row);
        }
        return rows;
    }

    private static String shown(Object value) throws Exception {
        if (value == null) return "null";
        if (value instanceof byte[] bytes) {
            return bytes.length > 200 ? "bytes " + bytes.length + " " + md5(bytes) : "bytes " + HexFormat.of().formatHex(bytes);
        }
        String text = value.toString();
        if (text.length() > 200) text = text.length() + " " + md5(text.getBytes(StandardCharsets.UTF_8));
        return value.getClass().getSimpleName() + " " + text;
    }

    private static String md5(byte[] bytes) throws Exception {
        return HexFormat.of().formatHex(MessageDigest.getInstance("MD5").digest(bytes));
    }

    private Object several(String sql) throws Exception {
        List<Object> found = new ArrayList<>();
        try (Statement statement = connection.createStatement()) {
            boolean rows = statement.execute(sql);
            while (rows || statement.getUpdateCount() != -1) {
                found.add(rows ? rows(statement.getResultSet()) : (Object) (long) statement.getUpdateCount());
                rows = statement.getMoreResults();
            }
        } catch (SQLException error) {
            found.add(failed(error));
        }
        return found;
    }

    private Object kill() throws Exception {
        long id;
        try (ResultSet result = connection.createStatement().executeQuery("SELECT CONNECTION_ID()")) {
            result.next();
            id = result.getLong(1);
        }
        Steps other = new Steps(d, scheme);
        other.connect(Map.of());
        other.connection.createStatement().execute("KILL " + id);
        other.close();
        try (Statement statement = connection.createStatement()) {
            statement.execute("SELECT 1");
        } catch (SQLException error) {
            return Map.of("lost", true);
        }
        return Map.of("lost", false);
    }

    private Object large(String insert, String select) throws Exception {
        byte[] value = new byte[((Long) d.get("size")).intValue()];
        for (int at = 0; at < value.length; at++) value[at] = (byte) at;
        try (PreparedStatement statement = connection.prepareStatement(insert)) {
            statement.setBinaryStream(1, new ByteArrayInputStream(value), value.length);
            statement.execute();
        }
        try (ResultSet result = connection.createStatement().executeQuery(select)) {
            result.next();
            return Map.of("same", Arrays.equals(value, result.getBytes(1)));
        }
    }

    private Object copy(String select, String insert, boolean prepared) throws Exception {
        long count = 0;
        try (PreparedStatement from = connection.prepareStatement(select);
             ResultSet result = prepared ? from.executeQuery() : connection.createStatement().executeQuery(select);
             PreparedStatement into = connection.prepareStatement(insert)) {
            int width = result.getMetaData().getColumnCount();
            while (result.next()) {
                for (int at = 1; at <= width; at++) {
                    boolean year = result.getMetaData().getColumnTypeName(at).equals("YEAR");
                    boolean time = result.getMetaData().getColumnTypeName(at).equals("TIME");
                    into.setObject(at, year || time ? result.getString(at) : result.getObject(at));
                }
                into.execute();
                count++;
            }
        }
        return Map.of("rows", count);
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> map(Object value) {
        return (Map<String, Object>) value;
    }

    /** Just enough JSON. */
    private static final class Json {
        private final String text;
        private int at;

        Json(String text) {
            this.text = text;
        }

        Object value() {
            skip();
            char c = text.charAt(at);
            if (c == '{') {
                Map<String, Object> found = new LinkedHashMap<>();
                at++;
                for (skip(); text.charAt(at) != '}'; skip()) {
                    if (text.charAt(at) == ',') at++;
                    skip();
                    String name = string();
                    skip();
                    at++;
                    found.put(name, value());
                }
                at++;
                return found;
            }
            if (c == '[') {
                List<Object> found = new ArrayList<>();
                at++;
                for (skip(); text.charAt(at) != ']'; skip()) {
                    if (text.charAt(at) == ',') at++;
                    found.add(value());
                }
                at++;
                return found;
            }
            if (c == '"') return string();
            int start = at;
            while (at < text.length() && ",]} \n\r\t".indexOf(text.charAt(at)) < 0) at++;
            String word = text.substring(start, at);
            return switch (word) {
                case "null" -> null;
                case "true" -> true;
                case "false" -> false;
                default -> word.contains(".") ? (Object) Double.parseDouble(word) : (Object) Long.parseLong(word);
            };
        }

        private void skip() {
            while (Character.isWhitespace(text.charAt(at))) at++;
        }

        private String string() {
            StringBuilder found = new StringBuilder();
            for (at++; text.charAt(at) != '"'; at++) {
                char c = text.charAt(at);
                if (c == '\\') {
                    c = text.charAt(++at);
                    switch (c) {
                        case 'n' -> c = '\n';
                        case 't' -> c = '\t';
                        case 'r' -> c = '\r';
                        case 'b' -> c = '\b';
                        case 'f' -> c = '\f';
                        case 'u' -> {
                            c = (char) Integer.parseInt(text.substring(at + 1, at + 5), 16);
                            at += 4;
                        }
                        default -> { }
                    }
                }
                found.append(c);
            }
            at++;
            return found.toString();
        }

        static String text(Object value) {
            if (value instanceof Map<?, ?> named) {
                List<String> parts = new ArrayList<>();
                named.forEach((name, one) -> parts.add(text(name) + ": " + text(one)));
                return "{" + String.join(", ", parts) + "}";
            }
            if (value instanceof List<?> list) {
                List<String> parts = new ArrayList<>();
                list.forEach(one -> parts.add(text(one)));
                return "[" + String.join(", ", parts) + "]";
            }
            if (value == null || value instanceof Number || value instanceof Boolean) return String.valueOf(value);
            StringBuilder found = new StringBuilder("\"");
            for (char c : value.toString().toCharArray()) {
                if (c == '"' || c == '\\') found.append('\\').append(c);
                else if (c < 0x20) found.append(String.format("\\u%04x", (int) c));
                else found.append(c);
            }
            return found.append('"').toString();
        }
    }
}
