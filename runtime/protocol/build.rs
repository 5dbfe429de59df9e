//! Generates the control plane's messages and service from `proto/control.proto` (needs `protoc`).

fn main() -> std::io::Result<()> {
    tonic_prost_build::configure().bytes(".").compile_protos(&["proto/control.proto"], &["proto"])
}
