//! A run continued with another instruction set, as on another machine.

mod support;

use std::fs;

use f2_engine::Simd;
use support::{Folder, Run, invented_text, small_settings, wait_for};

fn workshop() -> Folder {
    let folder = Folder::new();
    folder.write("text.txt", invented_text(100));
    folder.write("small.toml", small_settings(16) + "[checkpoint]\nevery_steps = 8\n");
    let words = ["prepare", "text.txt", "--out", "corpus", "--documents", "lines"];
    let prepared = folder.f2(&[&words[..], &["--vocab-size", "300"]].concat());
    assert_eq!(prepared.code, 0, "{}", prepared.stderr);
    assert_eq!(folder.f2(&["classes", "corpus"]).code, 0);
    folder
}

fn on(folder: &Folder, simd: &str, arguments: &[&str]) -> Run {
    folder.f2_with(arguments, &[("F2_SIMD", simd)])
}

fn train<'a>(out: &'a str, steps: &'a str) -> Vec<&'a str> {
    let words =
        ["train", "corpus", "--config", "small.toml", "--objective", "f2", "--device", "cpu"];
    [&words[..], &["--out", out, "--steps", steps]].concat()
}

#[test]
fn a_run_begun_on_avx2_goes_on_bit_for_bit_on_the_best() {
    let best = Simd::used();
    if best <= Simd::Avx2 {
        eprintln!("skipped: this processor has nothing above {}", best.name());
        return;
    }
    let folder = workshop();
    assert_eq!(on(&folder, best.word(), &train("whole", "400")).code, 0);
    let mut begun = folder.start_with(&train("moved", "400"), &[("F2_SIMD", "avx2")]);
    let saved = |entry: std::io::Result<fs::DirEntry>| {
        entry.unwrap().file_name().to_string_lossy().starts_with("step-")
    };
    wait_for(|| fs::read_dir(folder.path("moved/checkpoints")).is_ok_and(|mut all| all.any(saved)));
    begun.kill().unwrap();
    begun.wait().unwrap();
    assert!(!folder.path("moved/checkpoints/step-400").exists(), "it was over before it was moved");
    let moved = on(&folder, best.word(), &["train", "--resume", "moved"]);
    assert_eq!(moved.code, 0, "{}", moved.stderr);
    let weights = |run: &str| {
        fs::read(folder.path(run).join("checkpoints/step-400/model.safetensors")).unwrap()
    };
    assert!(weights("whole") == weights("moved"), "other weights");
}

#[test]
fn bf16_trains_and_writes_where_it_can_and_is_refused_elsewhere() {
    let folder = workshop();
    let with_bf16 = [&train("run", "10")[..], &["--precision", "bf16"]].concat();
    if Simd::has_bf16() {
        let trained = folder.f2(&with_bf16);
        assert_eq!(trained.code, 0, "{}", trained.stderr);
        let words = ["generate", "run", "--prompt", "ka lo", "--precision", "bf16", "--seed", "1"];
        let written = folder.f2(&[&words[..], &["--device", "cpu"]].concat());
        assert_eq!(written.code, 0, "{}", written.stderr);
    }
    let refused = on(&folder, "baseline", &with_bf16);
    assert_eq!(refused.code, 4);
    assert!(refused.stderr.contains("leave `--precision` out"), "{}", refused.stderr);
    let unknown = on(&folder, "avx3", &train("run", "10"));
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("avx3"), "{}", unknown.stderr);
}
