//! The environment variables of `huggingface_hub` that matter here.

use std::path::{Path, PathBuf};

/// Where the cache and the hub are, and whether the hub may be contacted.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The folder of the cache.
    pub cache: PathBuf,
    /// The address of the hub, without a trailing slash.
    pub endpoint: String,
    /// The user's access token.
    pub token: Option<String>,
    /// Whether downloads are forbidden.
    pub offline: bool,
}

impl Environment {
    /// The environment of this process.
    pub fn of_process() -> Self {
        Self::of(&|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn of(variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let is_on = |name: &str| {
            let value = variable(name).unwrap_or_default().to_uppercase();
            ["1", "ON", "YES", "TRUE"].contains(&value.as_str())
        };
        let home = home(variable);
        let cache = variable("HF_HUB_CACHE").or_else(|| variable("HUGGINGFACE_HUB_CACHE"));
        let endpoint = variable("HF_ENDPOINT").unwrap_or_else(|| "https://huggingface.co".into());
        let secret = || variable("HF_TOKEN").or_else(|| variable("HUGGING_FACE_HUB_TOKEN"));
        Self {
            cache: cache.map_or_else(|| home.join("hub"), |path| expanded(&path, variable)),
            endpoint: endpoint.trim_end_matches('/').to_owned(),
            token: secret().or_else(|| saved_token(&home, variable)),
            offline: is_on("HF_HUB_OFFLINE") || is_on("TRANSFORMERS_OFFLINE"),
        }
    }
}

/// The folder in which Hugging Face's programs keep their files.
fn home(variable: &dyn Fn(&str) -> Option<String>) -> PathBuf {
    if let Some(home) = variable("HF_HOME") {
        return expanded(&home, variable);
    }
    let cache = variable("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.unwrap_or_else(|| expanded("~/.cache", variable));
    cache.join("huggingface")
}

/// The token that `hf auth login` saved.
fn saved_token(home: &Path, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let path = variable("HF_TOKEN_PATH").map_or_else(|| home.join("token"), PathBuf::from);
    let token = std::fs::read_to_string(path).ok()?;
    Some(token.trim().to_owned()).filter(|token| !token.is_empty())
}

/// A path with a leading `~/` expanded to the user's home folder.
fn expanded(path: &str, variable: &dyn Fn(&str) -> Option<String>) -> PathBuf {
    let home =
        || variable("HOME").or_else(|| variable("USERPROFILE")).unwrap_or_else(|| ".".into());
    match path.strip_prefix("~/") {
        Some(rest) => PathBuf::from(home()).join(rest),
        None => PathBuf::from(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Environment {
        let find = |name: &str| {
            let found = pairs.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Environment::of(&find)
    }

    #[test]
    fn the_cache_is_where_python_has_it() {
        let cache = |pairs: &[(&str, &str)]| of(pairs).cache;
        let user = ("HOME", "/home/kim");
        assert_eq!(cache(&[user]), Path::new("/home/kim/.cache/huggingface/hub"));
        assert_eq!(cache(&[user, ("XDG_CACHE_HOME", "/x")]), Path::new("/x/huggingface/hub"));
        assert_eq!(cache(&[user, ("HF_HOME", "~/hf")]), Path::new("/home/kim/hf/hub"));
        assert_eq!(cache(&[("HF_HOME", "/hf"), ("HF_HUB_CACHE", "/c")]), Path::new("/c"));
    }

    #[test]
    fn tokens_are_given_or_saved() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().to_str().unwrap();
        std::fs::write(folder.path().join("token"), "hf_saved\n").unwrap();
        assert_eq!(of(&[("HF_HOME", home)]).token.as_deref(), Some("hf_saved"));
        let given = of(&[("HF_HOME", home), ("HF_TOKEN", "hf_given")]);
        assert_eq!(given.token.as_deref(), Some("hf_given"));
    }

    #[test]
    fn offline_is_said_in_several_ways() {
        for (value, offline) in [("1", true), ("yes", true), ("True", true), ("0", false)] {
            assert_eq!(of(&[("HF_HUB_OFFLINE", value)]).offline, offline, "{value}");
        }
        assert_eq!(of(&[("HF_ENDPOINT", "http://hub/")]).endpoint, "http://hub");
    }
}
