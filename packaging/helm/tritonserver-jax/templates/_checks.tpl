{{/* What the schema cannot say: values that contradict each other, each with what to do. */}}

{{- define "tritonserver-jax.check" -}}
{{- $models := .Values.models -}}
{{- if and (eq $models.source "claim") (not $models.claim.name) -}}
{{- fail "models.claim.name: expected the PersistentVolumeClaim that holds the model repository, got nothing; give it with --set models.claim.name=NAME, or choose another models.source: objectStore, image" -}}
{{- end -}}
{{- if and (eq $models.source "objectStore") (not $models.objectStore.url) -}}
{{- fail "models.objectStore.url: expected where the model repository is, as in s3://bucket/models, got nothing" -}}
{{- end -}}
{{- if eq $models.source "image" -}}
{{- if not $models.image.reference -}}
{{- fail "models.image.reference: expected the image that holds the model repository, got nothing" -}}
{{- end -}}
{{- if semverCompare "<1.31-0" .Capabilities.KubeVersion.Version -}}
{{- fail (printf "models.source: images can be mounted from Kubernetes 1.31 on, this is %s; choose claim or objectStore" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- if and $models.image.subPath (semverCompare "<1.33-0" .Capabilities.KubeVersion.Version) -}}
{{- fail (printf "models.image.subPath: a folder of an image can be mounted from Kubernetes 1.33 on, this is %s; lay the repository at the top of the image" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- end -}}

{{- $set := dict "--exit-timeout-secs" "drain.seconds" "--grpc-max-connection-age" "drain.seconds" "--model-repository" "models" "--load-model" "models.load" "--model-control-mode" "models.load" "--log-verbose" "server.logVerbose" "--http-port" "" "--grpc-port" "" "--metrics-port" "" "--http-address" "" "--grpc-address" "" "--metrics-address" "" "--allow-http" "" "--allow-metrics" "" "--allow-grpc" "" -}}
{{- range .Values.server.args -}}
{{- $name := regexFind "^[^= ]+" . -}}
{{- if hasKey $set $name -}}
{{- with get $set $name -}}
{{- fail (printf "server.args: %s is made from %s; change that" $name .) -}}
{{- else -}}
{{- fail (printf "server.args: %s is what the probes and the Service rely on; leave it out" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- if hasKey .Values.server.backendConfig "compile-cache" -}}
{{- fail "server.backendConfig: compile-cache is made from compileCache; change that" -}}
{{- end -}}

{{- if and (eq (toString .Values.rollout.maxSurge | trimSuffix "%") "0") (eq (toString .Values.rollout.maxUnavailable | trimSuffix "%") "0") -}}
{{- fail "rollout: maxSurge and maxUnavailable are both 0, so that no server could ever be replaced; make one of them 1" -}}
{{- end -}}

{{- $scaling := .Values.autoscaling -}}
{{- if ne $scaling.kind "none" -}}
{{- if gt (int $scaling.minReplicas) (int $scaling.maxReplicas) -}}
{{- fail (printf "autoscaling: minReplicas is %d and maxReplicas %d; expected the first not to be more" (int $scaling.minReplicas) (int $scaling.maxReplicas)) -}}
{{- end -}}
{{- end -}}
{{- if and (eq $scaling.kind "keda") (not $scaling.keda.prometheus) -}}
{{- fail "autoscaling.keda.prometheus: expected the address of Prometheus, as in http://prometheus.monitoring:9090, got nothing" -}}
{{- end -}}

{{- $limits := .Values.resources.limits | default dict -}}
{{- if hasKey $limits .Values.gpu.resource -}}
{{- fail (printf "resources.limits: %s is made from gpu.count; change that" .Values.gpu.resource) -}}
{{- end -}}
{{- if and (eq $scaling.kind "hpa") (eq $scaling.hpa.metric "cpu") (not (dig "requests" "cpu" "" .Values.resources)) -}}
{{- fail "autoscaling.hpa.metric: cpu is a share of resources.requests.cpu, which is not there; give it, or choose the metric queue" -}}
{{- end -}}
{{- end -}}
