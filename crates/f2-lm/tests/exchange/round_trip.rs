//! Export followed by import.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use f2_lm::exchange::export;

use crate::{FOLDERS, hub, import, run};

fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(path).unwrap())
        })
        .collect()
}

#[test]
fn import_export_and_import_again_give_equal_bytes() {
    for name in FOLDERS {
        let folder = tempfile::tempdir().unwrap();
        let [first, out, second] = ["first", "out", "second"].map(|name| folder.path().join(name));
        let model = import(&hub(name), &first).unwrap();
        export(&model, None, &out, &mut |_| true).unwrap();
        import(&out, &second).unwrap();
        assert_eq!(contents(&first), contents(&second), "{name}");
    }
}

#[test]
fn an_f2_model_comes_back_with_its_head_and_classes() {
    for tied in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let [first, out, second] = ["first", "out", "second"].map(|name| folder.path().join(name));
        let model = crate::export::model(&first, true, tied);
        export(&model, None, &out, &mut |_| true).unwrap();
        let back = import(&out, &second).unwrap();
        assert_eq!(back.shape, model.shape);
        assert_eq!(run(&back, &[3, 1, 4, 1, 5]), run(&model, &[3, 1, 4, 1, 5]));
        let (before, after) = (contents(&first), contents(&second));
        for file in ["model.safetensors", "model.json", "classes.json"] {
            assert_eq!(before[file], after[file], "{file}");
        }
    }
}
