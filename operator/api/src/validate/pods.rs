//! Quantities and pod templates.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde_json::Value;

use super::Checker;
use crate::pods::{PodTemplate, Resources};
use crate::{StreamJobSpec, quantity};

pub(super) fn check(spec: &StreamJobSpec, checker: &mut Checker) {
    resources(&spec.job_manager.resources, "spec.jobManager.resources", checker);
    resources(&spec.task_manager.resources, "spec.taskManager.resources", checker);
    template(&spec.job_manager.pod_template, "spec.jobManager.podTemplate", checker);
    template(&spec.task_manager.pod_template, "spec.taskManager.podTemplate", checker);
    if let Some(limits) = &spec.autoscaler.limits {
        for (name, amount) in [("cpu", &limits.cpu), ("memory", &limits.memory)] {
            if let Some(Err(cause)) = amount.as_ref().map(|amount| quantity::milli(amount.as_str())) {
                checker.fault(format!("spec.autoscaler.limits.{name}"), cause);
            }
        }
    }
}

fn resources(resources: &Resources, path: &str, checker: &mut Checker) {
    for (part, amounts) in [("requests", &resources.requests), ("limits", &resources.limits)] {
        for (name, amount) in amounts {
            if let Err(cause) = quantity::milli(amount.as_str()) {
                checker.fault(format!("{path}.{part}.{name}"), cause);
            }
        }
    }
    for (name, request) in &resources.requests {
        let Some(limit) = resources.limits.get(name) else { continue };
        let (Ok(request), Ok(limit)) = (quantity::milli(request.as_str()), quantity::milli(limit.as_str())) else {
            continue;
        };
        if name == "memory" && request != limit {
            checker.fault_with(
                &format!("{path}.requests.memory"),
                "it differs from limits.memory",
                "write the same amount in both: state is sized by it",
            );
        } else if request > limit {
            checker.fault(format!("{path}.requests.{name}"), "it exceeds the limit");
        }
    }
}

fn template(template: &PodTemplate, path: &str, checker: &mut Checker) {
    let value = Value::Object(template.as_map().clone());
    if let Err(error) = serde_json::from_value::<PodTemplateSpec>(value) {
        checker.fault(path, format!("it is no pod template: {error}"));
    }
}
