//! The Python code in an exported F² model, with which `transformers` runs it.

use std::io;
use std::path::Path;

use f2_files::disk;
use serde_json::{Value, json};

/// `model_type` of an F² model, which `transformers` does not know without the code below.
pub(super) const MODEL_TYPE: &str = "f2_gpt2";
/// The class of the model.
pub(super) const CLASS: &str = "F2ForCausalLM";

const GENERATE_FOLDER: &str = "custom_generate";

/// The file and class that each `Auto` class loads.
pub(super) fn auto_map() -> Value {
    json!({
        "AutoConfig": "configuration_f2.F2Config",
        "AutoModelForCausalLM": format!("modeling_f2.{CLASS}"),
    })
}

/// Writes the files into an exported folder.
pub(super) fn write(folder: &Path) -> io::Result<()> {
    let configuration = include_str!("remote/configuration_f2.py");
    disk::write(&folder.join("configuration_f2.py"), configuration)?;
    disk::write(&folder.join("modeling_f2.py"), include_str!("remote/modeling_f2.py"))?;
    let generate = folder.join(GENERATE_FOLDER);
    disk::create_folders(&generate)?;
    disk::write(&generate.join("generate.py"), include_str!("remote/custom_generate/generate.py"))
}
