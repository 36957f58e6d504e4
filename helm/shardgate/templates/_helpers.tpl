{{/* Names. */}}
{{- define "shardgate.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "shardgate.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "shardgate.labels" -}}
{{ include "shardgate.selectorLabels" . }}
app.kubernetes.io/part-of: shardgate
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "shardgate.secretName" -}}
{{- .Values.existingSecret | default (include "shardgate.fullname" .) -}}
{{- end -}}

{{/* How many pods there are at least. */}}
{{- define "shardgate.replicas" -}}
{{- if .Values.autoscaling.enabled }}{{ .Values.autoscaling.minReplicas }}{{ else }}{{ .Values.replicas }}{{ end -}}
{{- end -}}

{{/* A key of the Secret for a name: what Kubernetes does not allow in keys becomes its code. */}}
{{- define "shardgate.key" -}}
{{- $key := . -}}
{{- if not (regexMatch "^[-._a-zA-Z0-9]+$" $key) -}}
{{- $key = printf "%s-%s" (regexReplaceAll "[^-._a-zA-Z0-9]+" $key "_") (sha256sum $key | trunc 8) -}}
{{- end -}}
{{- $key -}}
{{- end -}}

{{/* Whether the topology is the chart's own. */}}
{{- define "shardgate.zookeeper" -}}
{{- if dig "topology" "zookeeper" "" .Values.settings -}}true{{- end -}}
{{- end -}}

{{/* Whether the schema is not the chart's, but a node. */}}
{{- define "shardgate.schemaNode" -}}
{{- if dig "topology" "zookeeper" "schema_path" "" .Values.settings -}}true{{- end -}}
{{- end -}}

{{/* A document given as a mapping or as a text. */}}
{{- define "shardgate.document" -}}
{{- if kindIs "string" . -}}{{ . }}{{- else -}}{{ toPrettyJson . }}{{- end -}}
{{- end -}}

{{/* A duration of the settings (30, 500ms, 1h30m) in whole seconds, rounded up. */}}
{{- define "shardgate.seconds" -}}
{{- $seconds := 0.0 -}}
{{- if kindIs "string" . -}}
{{- $units := dict "ms" 0.001 "s" 1.0 "m" 60.0 "h" 3600.0 "d" 86400.0 -}}
{{- range regexFindAll "[0-9]+(\\.[0-9]+)?\\s*(ms|s|m|h|d)" . -1 -}}
{{- $unit := regexFind "[a-z]+" . -}}
{{- $seconds = addf $seconds (mulf (regexFind "[0-9.]+" . | float64) (get $units $unit)) -}}
{{- end -}}
{{- else -}}
{{- $seconds = . | float64 -}}
{{- end -}}
{{- ceil $seconds | int64 -}}
{{- end -}}

{{- define "shardgate.gracePeriod" -}}
{{- if kindIs "invalid" .Values.terminationGracePeriodSeconds -}}
{{- $drain := include "shardgate.seconds" (dig "timeouts" "drain" "30s" .Values.settings) | int64 -}}
{{- add (.Values.preStopSeconds | int64) $drain 10 -}}
{{- else -}}
{{- .Values.terminationGracePeriodSeconds | int64 -}}
{{- end -}}
{{- end -}}

{{/* Something with a password: the same without it, and with the file that holds it. Arguments: the mapping, its key in
     the Secret, whether there must be one. */}}
{{- define "shardgate.withoutPassword" -}}
{{- $one := deepCopy (index . 0) -}}
{{- $others := or (hasKey $one "password_env") (hasKey $one "password_file") (hasKey $one "password_hash") -}}
{{- if or (hasKey $one "password") (and (index . 2) (not $others)) -}}
{{- $_ := set $one "password_file" (printf "secrets/%s" (index . 1)) -}}
{{- end -}}
{{- toJson (omit $one "password") -}}
{{- end -}}

{{/* shardgate.yaml: the settings with what is the chart's. */}}
{{- define "shardgate.settings" -}}
{{- $root := . -}}
{{- $settings := deepCopy .Values.settings -}}
{{- $held := not (empty .Values.existingSecret) -}}
{{- if not $settings.users }}{{ fail "settings.users: at least one user is needed" }}{{ end -}}
{{- if not (dig "backends" "user" "" $settings) }}{{ fail "settings.backends.user is needed" }}{{ end -}}
{{- range $name := list "listen" "status" "schema" -}}
{{- if hasKey $settings $name }}{{ fail (printf "settings.%s is the chart's own: leave it out" $name) }}{{ end -}}
{{- end -}}
{{- $address := printf "%s:%v" .Values.listenHost .Values.ports.mysql -}}
{{- if .Values.proxyProtocol -}}
{{- $_ := set $settings "listen" (list (dict "address" $address "proxy_protocol" .Values.proxyProtocol)) -}}
{{- else -}}
{{- $_ := set $settings "listen" $address -}}
{{- end -}}
{{- $_ := set $settings "status" (dict "listen" (printf "%s:%v" .Values.listenHost .Values.ports.status)) -}}
{{- if not (include "shardgate.schemaNode" .) }}{{ $_ := set $settings "schema" "schema.yaml" }}{{ end -}}
{{- if .Values.tlsSecret -}}
{{- $files := dict "cert" "/etc/shardgate-tls/tls.crt" "key" "/etc/shardgate-tls/tls.key" -}}
{{- $_ := set $settings "tls" (merge $files ($settings.tls | default dict)) -}}
{{- end -}}
{{- if include "shardgate.zookeeper" . -}}
{{- $zookeeper := $settings.topology.zookeeper -}}
{{- $named := not (empty $zookeeper.user) -}}
{{- $zookeeper = include "shardgate.withoutPassword" (list $zookeeper "zookeeper-password" (and $held $named)) | fromJson -}}
{{- if not $zookeeper.cache_file }}{{ $_ := set $zookeeper "cache_file" "/var/lib/shardgate/topology.cache.json" }}{{ end -}}
{{- if and (include "shardgate.schemaNode" .) (not $zookeeper.schema_cache_file) -}}
{{- $_ := set $zookeeper "schema_cache_file" "/var/lib/shardgate/schema.cache.yaml" -}}
{{- end -}}
{{- $_ := set $settings "topology" (dict "zookeeper" $zookeeper) -}}
{{- else -}}
{{- $_ := set $settings "topology" (dict "file" "topology.json" "proxies_path" "/var/lib/shardgate/proxies") -}}
{{- end -}}
{{- $users := list -}}
{{- range $settings.users -}}
{{- $key := printf "user-%s" .name | include "shardgate.key" -}}
{{- $users = append $users (include "shardgate.withoutPassword" (list . $key $held) | fromJson) -}}
{{- end -}}
{{- $_ := set $settings "users" $users -}}
{{- $hosts := dict -}}
{{- range $host, $one := ($settings.backends.hosts | default dict) -}}
{{- $key := printf "host-%s" $host | include "shardgate.key" -}}
{{- $made := include "shardgate.withoutPassword" (list $one $key false) | fromJson -}}
{{- $there := dict -}}
{{- range $user, $account := ($one.accounts | default dict) -}}
{{- $key := printf "host-%s-account-%s" $host $user | include "shardgate.key" -}}
{{- $_ := set $there $user (include "shardgate.withoutPassword" (list $account $key false) | fromJson) -}}
{{- end -}}
{{- if $there }}{{ $_ := set $made "accounts" $there }}{{ end -}}
{{- $_ := set $hosts $host $made -}}
{{- end -}}
{{- $accounts := list -}}
{{- range ($settings.backends.accounts | default list) -}}
{{- $key := printf "account-%s" .user | include "shardgate.key" -}}
{{- $accounts = append $accounts (include "shardgate.withoutPassword" (list . $key $held) | fromJson) -}}
{{- end -}}
{{- $backends := include "shardgate.withoutPassword" (list $settings.backends "backend-password" $held) | fromJson -}}
{{- if $hosts }}{{ $_ := set $backends "hosts" $hosts }}{{ end -}}
{{- if $accounts }}{{ $_ := set $backends "accounts" $accounts }}{{ end -}}
{{- $_ := set $settings "backends" $backends -}}
{{- toYaml $settings -}}
{{- end -}}

{{/* The passwords of the settings by their keys in the Secret, as JSON. */}}
{{- define "shardgate.passwords" -}}
{{- $found := dict -}}
{{- range .Values.settings.users -}}
{{- if hasKey . "password" }}{{ $_ := set $found (printf "user-%s" .name | include "shardgate.key") (toString .password) }}{{ end -}}
{{- end -}}
{{- range $host, $one := (dig "backends" "hosts" dict .Values.settings) -}}
{{- if hasKey $one "password" }}{{ $_ := set $found (printf "host-%s" $host | include "shardgate.key") (toString $one.password) }}{{ end -}}
{{- range $user, $account := ($one.accounts | default dict) -}}
{{- if hasKey $account "password" }}{{ $_ := set $found (printf "host-%s-account-%s" $host $user | include "shardgate.key") (toString $account.password) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- range (dig "backends" "accounts" list .Values.settings) -}}
{{- if hasKey . "password" }}{{ $_ := set $found (printf "account-%s" .user | include "shardgate.key") (toString .password) }}{{ end -}}
{{- end -}}
{{- if hasKey .Values.settings.backends "password" }}{{ $_ := set $found "backend-password" (toString .Values.settings.backends.password) }}{{ end -}}
{{- $zookeeper := dig "topology" "zookeeper" dict .Values.settings -}}
{{- if hasKey $zookeeper "password" }}{{ $_ := set $found "zookeeper-password" (toString $zookeeper.password) }}{{ end -}}
{{- toJson $found -}}
{{- end -}}

{{/* Where the keys of an existing Secret go: those that the settings refer to. */}}
{{- define "shardgate.secretItems" -}}
{{- $settings := include "shardgate.settings" . | fromYaml -}}
{{- $hosts := values ($settings.backends.hosts | default dict) -}}
{{- $there := list -}}
{{- range $hosts }}{{ $there = concat $there (values (.accounts | default dict)) }}{{ end -}}
{{- $zookeeper := dig "topology" "zookeeper" dict $settings -}}
{{- range concat (list $settings.backends $zookeeper) $settings.users ($settings.backends.accounts | default list) $hosts $there -}}
{{- $file := .password_file | default "" -}}
{{- if hasPrefix "secrets/" $file -}}
- {key: {{ trimPrefix "secrets/" $file }}, path: {{ $file | quote }}}
{{ end -}}
{{- end -}}
{{- end -}}
