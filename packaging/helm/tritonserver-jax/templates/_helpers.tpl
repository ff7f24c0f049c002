{{/* Names, labels, and what is computed from the values. */}}

{{- define "tritonserver-jax.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride }}
{{- else -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- if contains $name .Release.Name -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "tritonserver-jax.selectorLabels" -}}
app.kubernetes.io/name: {{ .Values.nameOverride | default .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: server
{{- end -}}

{{/* Of an object; that of a pod is the server, and nothing else may be selected as one. */}}
{{- define "tritonserver-jax.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "tritonserver-jax.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "tritonserver-jax.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "tritonserver-jax.fullname" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end -}}

{{/* What is known of the Triton release, as JSON. */}}
{{- define "tritonserver-jax.release" -}}
{{ index (.Files.Get "files/releases.json" | fromJson) .Values.image.release | toJson }}
{{- end -}}

{{- define "tritonserver-jax.variant" -}}
{{- $known := (include "tritonserver-jax.release" . | fromJson).variants -}}
{{- $chosen := .Values.image.variant -}}
{{- if and (eq $chosen "auto") (eq (int .Values.gpu.count) 0) -}}
cpu
{{- else if eq $chosen "auto" -}}
{{- if eq (len $known) 1 -}}
{{- fail (printf "gpu.count: release %s has no image for GPUs, because its CUDA is not known; choose another image.release, or build an image and name it with image.tag and image.variant=cpu" .Values.image.release) -}}
{{- end -}}
{{ last $known }}
{{- else if has $chosen $known -}}
{{ $chosen }}
{{- else -}}
{{- fail (printf "image.variant: expected %s for release %s, got %s" (join " or " $known) .Values.image.release $chosen) -}}
{{- end -}}
{{- end -}}

{{- define "tritonserver-jax.image" -}}
{{- $variant := include "tritonserver-jax.variant" . -}}
{{- $suffix := eq $variant "cpu" | ternary "" (printf "-%s" $variant) -}}
{{- $made := printf "%s-triton%s%s" .Chart.AppVersion .Values.image.release $suffix -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default $made }}
{{- with .Values.image.digest }}@{{ . }}{{ end -}}
{{- end -}}

{{/*
The end of a server, all from drain.seconds, which is the pod's grace period.

First quarter: the preStop hook sleeps. The pod is no endpoint any more, and the news of that reaches
every proxy; the server takes requests as before.
Next two: after SIGTERM, Triton takes no new connection, and has that long for the requests under way.
Last quarter: the models are given up, and the process ends.
*/}}
{{- define "tritonserver-jax.preStopSeconds" -}}
{{ div .Values.drain.seconds 4 }}
{{- end -}}

{{- define "tritonserver-jax.exitTimeoutSeconds" -}}
{{ div .Values.drain.seconds 2 }}
{{- end -}}

{{/*
A gRPC channel goes on with the server that it has, whatever the endpoints are. So the server asks
each client to open another connection at an age that comes within the preStop hook's sleep (a tenth
more or less); requests and streams under way stay with the old one until they are done.
*/}}
{{- define "tritonserver-jax.grpcConnectionMilliseconds" -}}
{{ mul (include "tritonserver-jax.preStopSeconds" .) 500 }}
{{- end -}}

{{- define "tritonserver-jax.startupPeriod" -}}
5
{{- end -}}

{{- define "tritonserver-jax.healthCheck" -}}
/opt/tritonserver/backends/jax/scripts/health_check.py
{{- end -}}

{{/* The options of tritonserver, as a YAML list. */}}
{{- define "tritonserver-jax.args" -}}
{{- $release := include "tritonserver-jax.release" . | fromJson -}}
{{- $args := list "tritonserver" -}}
{{- if eq .Values.models.source "objectStore" -}}
{{- $args = append $args (printf "--model-repository=%s" .Values.models.objectStore.url) -}}
{{- else -}}
{{- $args = append $args "--model-repository=/models" -}}
{{- end -}}
{{- if .Values.models.load -}}
{{- $args = append $args "--model-control-mode=explicit" -}}
{{- range .Values.models.load -}}
{{- $args = append $args (printf "--load-model=%s" .) -}}
{{- end -}}
{{- end -}}
{{- $args = append $args (printf "--exit-timeout-secs=%s" (include "tritonserver-jax.exitTimeoutSeconds" .)) -}}
{{- if and $release.grpcMaxConnectionAge .Values.drain.grpcConnections -}}
{{- $args = append $args (printf "--grpc-max-connection-age=%s" (include "tritonserver-jax.grpcConnectionMilliseconds" .)) -}}
{{- end -}}
{{- if .Values.server.latencySummaries -}}
{{- $args = append $args "--metrics-config=summary_latencies=true" -}}
{{- end -}}
{{- with .Values.server.logVerbose -}}
{{- $args = append $args (printf "--log-verbose=%d" (int .)) -}}
{{- end -}}
{{- if .Values.compileCache.enabled -}}
{{- $args = append $args "--backend-config=jax,compile-cache=/cache" -}}
{{- end -}}
{{- range $key, $value := .Values.server.backendConfig -}}
{{- $args = append $args (printf "--backend-config=jax,%s=%v" $key $value) -}}
{{- end -}}
{{- concat $args .Values.server.args | toYaml -}}
{{- end -}}

{{/* The variables and, for GCS, the file by which Triton knows who reads the object store. */}}
{{- define "tritonserver-jax.objectStoreKeys" -}}
{{- if hasPrefix "s3://" .Values.models.objectStore.url -}}
AWS_ACCESS_KEY_ID: false
AWS_SECRET_ACCESS_KEY: false
AWS_SESSION_TOKEN: true
AWS_DEFAULT_REGION: true
{{- else if hasPrefix "as://" .Values.models.objectStore.url -}}
AZURE_STORAGE_ACCOUNT: false
AZURE_STORAGE_KEY: false
{{- end -}}
{{- end -}}

{{- define "tritonserver-jax.hasGcsSecret" -}}
{{- $store := .Values.models.objectStore -}}
{{- if and (eq .Values.models.source "objectStore") (hasPrefix "gs://" $store.url) $store.secret -}}
true
{{- end -}}
{{- end -}}

{{- define "tritonserver-jax.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: {{ int64 .Values.pod.user }}
runAsGroup: {{ int64 .Values.pod.user }}
fsGroup: {{ int64 .Values.pod.user }}
# Only the volumes that a server writes to are of that group; a large claim is not walked through.
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "tritonserver-jax.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/*
How long a request waits in Triton's queue, in milliseconds: the mean over all servers of this
Helm release.
*/}}
{{- define "tritonserver-jax.queueQuery" -}}
{{- $of := printf "{namespace=%q,pod=~%q}" .Release.Namespace (printf "%s-.+" (include "tritonserver-jax.fullname" .)) -}}
sum(rate(nv_inference_queue_duration_us{{ $of }}[1m])) / 1000 / clamp_min(sum(rate(nv_inference_request_success{{ $of }}[1m])), 0.001)
{{- end -}}

{{/* Both forms of scaling wait before there are fewer servers, and take one away a minute. */}}
{{- define "tritonserver-jax.scalingBehavior" -}}
scaleUp:
  stabilizationWindowSeconds: 0
  policies:
    - {type: Percent, value: 100, periodSeconds: 60}
    - {type: Pods, value: 2, periodSeconds: 60}
  selectPolicy: Max
scaleDown:
  stabilizationWindowSeconds: {{ .Values.autoscaling.scaleDownSeconds }}
  policies:
    - {type: Pods, value: 1, periodSeconds: 60}
{{- end -}}
