//! Compares the declaration of every kernel in Rust with its signature in the `.cu` files: only
//! declared kernels can be launched, so the number and widths of arguments are right.

use std::collections::BTreeMap;

use super::Kind;
use super::compile::SOURCES;
use crate::cuda::{attention, embedding, exchange, head, linear, memory, norm, optimiser, product};

type Signatures = BTreeMap<String, Vec<Kind>>;

/// The kernels declared in Rust.
fn declared() -> Signatures {
    let families = [
        attention::KERNELS,
        embedding::KERNELS,
        exchange::KERNELS,
        head::KERNELS,
        linear::KERNELS,
        linear::FUSED_KERNELS,
        memory::KERNELS,
        norm::KERNELS,
        optimiser::KERNELS,
        product::KERNELS,
    ];
    let all = families.into_iter().flatten();
    all.map(|(name, kinds)| ((*name).to_owned(), kinds.to_vec())).collect()
}

/// The kernels of a source: `KERNEL [__launch_bounds__(…)] name(parameters)`.
fn kernels(source: &str) -> Signatures {
    let mut found = Signatures::new();
    let source = source.replace('\\', " ");
    for (place, _) in source.match_indices("KERNEL ") {
        let line = source[..place].rsplit('\n').next().unwrap_or_default();
        if line.contains("#define") {
            continue;
        }
        let mut rest = source[place + "KERNEL ".len()..].trim_start();
        if let Some(bounds) = rest.strip_prefix("__launch_bounds__") {
            rest = bounds.split_once(')').expect("bounds end").1.trim_start();
        }
        let (name, rest) = rest.split_once('(').expect("a name comes before parameters");
        let (parameters, _) = rest.split_once(')').expect("parameters end");
        let kinds = parameters.split(',').map(kind).collect();
        found.insert(name.trim().to_owned(), kinds);
    }
    instances(&source, found)
}

/// Replaces kernels whose names a macro completes, `name_##PER`, by one for each use: `NORMS(1)`.
fn instances(source: &str, kernels: Signatures) -> Signatures {
    let (_, definition) = source.split_once("#define NORMS(PER)").unwrap_or_default();
    let uses = definition.split("NORMS(").skip(1);
    let values: Vec<&str> = uses.filter_map(|text| Some(text.split_once(')')?.0)).collect();
    let mut all = Signatures::new();
    for (name, kinds) in kernels {
        match name.strip_suffix("##PER") {
            Some(stem) => {
                all.extend(values.iter().map(|value| (format!("{stem}{value}"), kinds.clone())));
            }
            None => drop(all.insert(name, kinds)),
        }
    }
    all
}

fn kind(parameter: &str) -> Kind {
    if parameter.contains("TensorMap") {
        return Kind::TensorMap;
    }
    if parameter.contains('*') {
        return Kind::Address;
    }
    let word = parameter.split_whitespace().find(|word| *word != "const");
    match word.expect("a parameter has a type") {
        "int" | "u32" | "i64" | "u64" => Kind::Integer,
        "float" => Kind::Float,
        "double" => Kind::Double,
        other => panic!("no launch passes a {other}"),
    }
}

#[test]
fn declarations_are_the_signatures_of_the_kernels() {
    let sources: Signatures = SOURCES.iter().flat_map(|(_, text)| kernels(text)).collect();
    let declared = declared();
    assert_eq!(declared.keys().collect::<Vec<_>>(), sources.keys().collect::<Vec<_>>());
    for (name, kinds) in declared {
        assert_eq!(kinds, sources[&name], "{name}");
    }
}

#[test]
fn signatures_are_read_as_they_are_written() {
    let source = "#define KERNEL extern \"C\" __global__ void\n\
        KERNEL plain(int rows, const float* x) {\n\
        KERNEL __launch_bounds__(256, 2)\nbound(double share, u64 count,\n float scale) {\n\
        #define NORMS(PER) \\\n KERNEL norm_##PER(u32 site) { \\\n }\nNORMS(1)\nNORMS(4)\n";
    let expected = [
        ("bound", vec![Kind::Double, Kind::Integer, Kind::Float]),
        ("norm_1", vec![Kind::Integer]),
        ("norm_4", vec![Kind::Integer]),
        ("plain", vec![Kind::Integer, Kind::Address]),
    ];
    let found = kernels(source);
    assert_eq!(found, expected.map(|(name, kinds)| (name.to_owned(), kinds)).into());
}
