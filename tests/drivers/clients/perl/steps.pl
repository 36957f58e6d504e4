# Runs the checks of a description (see ../../checks.yaml) with DBD::mysql or DBD::MariaDB.
#     perl steps.pl mysql|MariaDB DESCRIPTION.json
# One JSON line a check goes to standard output.
use strict;
use warnings;
use utf8;
use DBI qw(:sql_types);
use Digest::MD5 qw(md5_hex);
use Encode qw(encode_utf8);
use JSON::PP;

my ($driver, $path) = @ARGV;
my $prefix = $driver eq 'mysql' ? 'mysql' : 'mariadb';
if ($path eq '--version') {
    no strict 'refs';
    require "DBD/$driver.pm";
    print ${"DBD::${driver}::VERSION"}, "\n";
    exit;
}
my $json = JSON::PP->new->utf8->canonical->allow_nonref;
my $d = do { local $/; open my $file, '<', $path or die $!; $json->decode(<$file>) };
my (%saved, $dbh);
$SIG{__WARN__} = sub { };

sub shown {
    my ($value) = @_;
    return 'undef' unless defined $value;
    my $bytes = $value;
    utf8::encode($bytes);
    return 'string ' . length($value) . ' ' . md5_hex($bytes) if length($value) > 200 || $value =~ /[^\x20-\x{10ffff}]/;
    return "string $value";
}

sub open_one {
    my ($options) = @_;
    my $dsn = "DBI:$driver:database=" . ($options->{database} // $d->{database}) . ";host=$d->{host};port=$d->{port}";
    $dsn .= ";${prefix}_compression=1" if $options->{compress};
    $dsn .= ";${prefix}_multi_statements=1" if $options->{multi};
    if ($options->{tls}) {
        # DBD::mysql on libmariadb cannot insist on TLS
        $dsn .= ";${prefix}_ssl=1;${prefix}_ssl_ca_file=$d->{ca}" . ($driver eq 'mysql' ? ';mysql_ssl_optional=1' : '');
    }
    my $one = DBI->connect($dsn, $options->{user} // $d->{user}, $options->{password} // $d->{password},
        { RaiseError => 1, PrintError => 0, AutoCommit => 1, ($driver eq 'mysql' ? (mysql_enable_utf8mb4 => 1) : ()) });
    return $one;
}

sub run {
    my ($sql, $args) = @_;
    my $sth = $dbh->prepare($sql, { "${prefix}_server_prepare" => $args ? 1 : 0 });
    my $at = 0;
    for my $one (@{ $args // [] }) {
        ref $one ? $sth->bind_param(++$at, $$one, SQL_BINARY) : $sth->bind_param(++$at, $one);
    }
    my $affected = $sth->execute;
    if (!$sth->{NUM_OF_FIELDS}) {
        return { affected => $affected, id => $sth->{"${prefix}_insertid"} };
    }
    my @columns = map { [ $sth->{NAME}[$_], $sth->{TYPE}[$_], $sth->{PRECISION}[$_], $sth->{SCALE}[$_], $sth->{NULLABLE}[$_] ] } 0 .. $sth->{NUM_OF_FIELDS} - 1;
    return { rows => $sth->fetchall_arrayref, columns => \@columns };
}

sub reported {
    my ($found, $step) = @_;
    $found->{rows} = [ map { [ map { shown($_) } @$_ ] } @{ $found->{rows} } ] if $found->{rows};
    if ($step->{save}) {
        $saved{ $step->{save} } = $found->{id};
        $found->{id} = $found->{id} ? 1 : 0;
    }
    return $found;
}

sub several {
    my ($sql) = @_;
    my $sth = $dbh->prepare($sql);
    my @found;
    eval {
        $sth->execute;
        do {
            push @found, $sth->{NUM_OF_FIELDS} ? reported({ rows => $sth->fetchall_arrayref }, {}) : { affected => $sth->rows };
        } while ($sth->more_results);
        1;
    } or push @found, { error => [ $DBI::err, $DBI::state ] };
    return \@found;
}

sub large {
    my ($insert, $select) = @_;
    my $value = substr(join('', map { chr } 0 .. 255) x ($d->{size} / 256 + 1), 0, $d->{size});
    run($insert, [ \$value ]);
    my $back = run($select)->{rows}[0][0];
    return { same => $back eq $value ? 1 : 0 };
}

sub copy {
    my ($step) = @_;
    my $sth = $dbh->prepare($step->{copy}, { "${prefix}_server_prepare" => $step->{prepared} ? 1 : 0 });
    $sth->execute;
    my @binary = map { $_ == SQL_BINARY || $_ == SQL_VARBINARY || $_ == SQL_LONGVARBINARY || $_ == SQL_BIT || $_ == -2 || $_ == -4 } @{ $sth->{TYPE} };
    my $rows = $sth->fetchall_arrayref;
    for my $row (@$rows) {
        my $into = $dbh->prepare($step->{into}, { "${prefix}_server_prepare" => $step->{prepared} ? 1 : 0 });
        for my $at (0 .. $#$row) {
            $binary[$at] ? $into->bind_param($at + 1, $row->[$at], SQL_BINARY) : $into->bind_param($at + 1, $row->[$at]);
        }
        $into->execute;
    }
    return { rows => scalar @$rows };
}

sub done {
    my ($step) = @_;
    if ($step->{connect}) {
        $dbh->disconnect if $dbh;
        $dbh = undef;
        $dbh = open_one($step->{connect});
        return {};
    }
    if ($step->{begin}) { $dbh->begin_work; return {} }
    if ($step->{commit}) { $dbh->commit unless $dbh->{AutoCommit}; return {} }
    if ($step->{rollback}) { $dbh->rollback; return {} }
    if ($step->{kill}) {
        my $other = open_one({});
        $other->do('KILL ' . run('SELECT CONNECTION_ID()')->{rows}[0][0]);
        $other->disconnect;
        return { lost => eval { run('SELECT 1'); 1 } ? 0 : 1 };
    }
    return several($step->{multi}) if $step->{multi};
    return large(@{ $step->{large} }) if $step->{large};
    return copy($step) if $step->{copy};
    return reported(run($step->{text}), $step) if $step->{text};
    my @args = map { ref $_ eq 'HASH' ? ($_->{saved} ? $saved{ $_->{saved} } : \pack('H*', $_->{bytes})) : $_ } @{ $step->{args} };
    return reported(run($step->{prepared}, \@args), $step);
}

$| = 1;
$dbh = open_one({});
for my $check (@{ $d->{checks} }) {
    my @steps;
    for my $step (@{ $check->{steps} }) {
        my $found = eval { done($step) };
        $found = { error => [ $DBI::err ? ($DBI::err, $DBI::state) : "$@" ] } unless defined $found;
        push @steps, $found;
    }
    print $json->encode({ check => $check->{name}, steps => \@steps }), "\n";
}
