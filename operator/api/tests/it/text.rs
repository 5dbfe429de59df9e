//! Any text is read or refused, and what is written reads back.

use proptest::prelude::*;
use serde_json::json;
use streamkeeper_api::{ObjectName, StreamJob, load, validate, yaml};

const JOB: &str = "
apiVersion: streamkeeper.dev/v1alpha1
kind: StreamJob
metadata:
  name: nginx-hits
spec:
  parallelism: 2
  checkpoint:
    interval: 10s
  sql: |
    INSERT INTO a SELECT * FROM b;
";

#[test]
fn a_file_with_several_objects_gives_its_jobs_and_names_the_rest() {
    let text = format!(
        "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: demo\n---\n{JOB}---\napiVersion: v1\nkind: ConfigMap\n\
         metadata:\n  name: texts\ndata:\n  job.sql: SELECT 1\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: kafka}}\n"
    );
    let manifest = load(&text).unwrap();
    assert_eq!(manifest.job(None).unwrap().spec.parallelism, 2);
    assert_eq!(manifest.job(Some("nginx-hits")), manifest.job(None));
    assert_eq!(manifest.config_maps["texts"]["job.sql"], "SELECT 1");
    let named = |kind: &str, name: &str| ObjectName { kind: kind.to_owned(), name: name.to_owned() };
    assert_eq!(manifest.aside, [named("Namespace", "demo"), named("Deployment", "kafka")]);
}

#[test]
fn what_kubectl_prints_is_read_too() {
    let text = format!(
        "{}status:\n  phase: Running\n",
        JOB.replace(
            "  name: nginx-hits\n",
            "  name: nginx-hits\n  uid: x\n  generation: 3\n  creationTimestamp: \"2026-01-01T00:00:00Z\"\n  managedFields: [{manager: kubectl}]\n"
        )
    );
    assert_eq!(load(&text).unwrap().jobs.len(), 1);
}

#[test]
fn an_empty_field_means_its_default() {
    let manifest = load(&JOB.replace("interval: 10s", "interval:")).unwrap();
    assert_eq!(manifest.jobs[0].spec.checkpoint.interval.as_str(), "10s");
}

#[test]
fn sql_comes_from_a_config_map_of_the_same_file() {
    let job = "apiVersion: streamkeeper.dev/v1alpha1\nkind: StreamJob\nmetadata: {name: j}\nspec: {sqlFrom: {configMap: texts}}\n";
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: texts}\ndata: {job.sql: SELECT 1}\n";
    let manifest = load(&format!("{job}---\n{map}")).unwrap();
    let valid = validate(&manifest.jobs[0], &manifest.config_maps).unwrap();
    assert_eq!(valid.program, streamkeeper_api::ProgramSource::Sql("SELECT 1".to_owned()));

    let alone = load(job).unwrap();
    let faults = validate(&alone.jobs[0], &alone.config_maps).unwrap_err();
    assert_eq!(
        faults[0].to_string(),
        "spec.sqlFrom: there is no ConfigMap `texts` at hand (put it into the same file, or write the text under spec.sql)"
    );
}

fn any_job() -> impl Strategy<Value = StreamJob> {
    ("[a-z][a-z0-9-]{0,40}[a-z0-9]", "\\PC{1,200}", 1..=128_u32, 0..1000_u32, any::<bool>()).prop_map(
        |(name, sql, parallelism, failures, incremental)| {
            serde_json::from_value(json!({
                "apiVersion": "streamkeeper.dev/v1alpha1",
                "kind": "StreamJob",
                "metadata": { "name": name, "labels": { "a": sql.clone() } },
                "spec": {
                    "sql": sql,
                    "parallelism": parallelism,
                    "checkpoint": { "tolerableFailures": failures, "incremental": incremental },
                    "config": { "ttl.duration": "1h" },
                },
            }))
            .unwrap()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_text_panics(text in "\\PC*") {
        let _ = load(&text);
    }

    #[test]
    fn no_damage_to_a_job_panics(at in 0..JOB.len(), len in 0..20_usize, with in "[ \\[\\]{}:&*!|>'\"a0\n-]{0,8}") {
        let end = (at + len).min(JOB.len());
        let text = format!("{}{with}{}", &JOB[..at], &JOB[end..]);
        if let Ok(manifest) = load(&text) {
            for job in &manifest.jobs {
                let _ = validate(job, &manifest.config_maps);
            }
        }
    }

    #[test]
    fn a_job_that_is_written_reads_back(job in any_job()) {
        let text = yaml::write(&json!(job));
        let manifest = load(&text).unwrap();
        prop_assert_eq!(&manifest.jobs[..], &[job][..]);
        prop_assert!(validate(&manifest.jobs[0], &manifest.config_maps).is_ok());
    }
}

#[test]
fn the_examples_are_valid() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.ends_with(".yaml") || name.ends_with(".test.yaml") {
            continue;
        }
        let manifest =
            load(&std::fs::read_to_string(&path).unwrap()).unwrap_or_else(|faults| panic!("{name}: {faults:?}"));
        for job in &manifest.jobs {
            assert!(validate(job, &manifest.config_maps).is_ok(), "{name}");
        }
    }
}
