//! The page of `f2 serve`: the real server in a real browser.

mod support;

use serde_json::{Value, json};
use support::browser::{NO_BROWSER, Page, browser};
use support::server::{Server, workshop};

/// The page of a server in a window of desktop size; `None` without a browser.
fn opened() -> Option<(Server, Page)> {
    let Some(browser) = browser() else {
        eprintln!("{NO_BROWSER}");
        return None;
    };
    let server = Server::start(workshop(), &["f2", "mle", "--max-batch", "40"]);
    let mut page = Page::new(&browser);
    page.resize(1200, 900, false);
    visit(&mut page, &format!("http://{}/", server.address));
    Some((server, page))
}

fn visit(page: &mut Page, address: &str) {
    page.open(address);
    page.wait_for("document.querySelectorAll('section').length > 0");
}

/// Passes the server's events to the page one by one, each once the token of the last one is shown.
const ONE_EVENT_AT_A_TIME: &str = r"
    window.shownOneByOne = 0;
    const answered = fetch, count = () => document.querySelectorAll('.token').length;
    window.fetch = async (path, options) => {
      const answer = await answered(path, options);
      const events = (await answer.text()).split(/(?<=\n\n)/);
      const handed = async controller => {
        const event = events.shift();
        if (!event) return controller.close();
        const before = count(), deadline = Date.now() + (event.includes('[DONE]') ? 0 : 10000);
        controller.enqueue(new TextEncoder().encode(event));
        while (count() === before && Date.now() < deadline) await new Promise(go => setTimeout(go, 1));
        shownOneByOne += count() === before + 1;
      };
      const stream = new ReadableStream({ pull: handed }, { highWaterMark: 0 });
      return new Response(stream, { status: answer.status, headers: answer.headers });
    };
    null";

/// Types a prompt, and presses the button.
fn ask(page: &mut Page, prompt: &str) {
    page.click("document.getElementById('prompt')");
    page.value("document.getElementById('prompt').select()");
    page.enter(prompt);
    page.click("document.getElementById('go')");
}

fn wait_for_the_end(page: &mut Page) {
    let ended = "!document.getElementById('go').disabled";
    page.wait_for(&format!("{ended} && document.querySelectorAll('.token').length > 0"));
}

fn choose(page: &mut Page, column: usize, model: &str) {
    page.value(&format!(
        "(() => {{ const models = document.querySelectorAll('.model')[{column}]; \
         models.value = '{model}'; \
         models.dispatchEvent(new Event('input', {{ bubbles: true }})); }})()"
    ));
}

/// The text of a column, without its prompt.
fn written(page: &mut Page, column: usize) -> String {
    page.text(&format!(
        "[...document.querySelectorAll('section')[{column}].querySelectorAll('.token')]\
         .map(token => token.textContent).join('')"
    ))
}

/// The API's response to the request that the page sends, by default with its initial settings.
fn answer(server: &Server, model: &str, more: &Value) -> Value {
    let mut body = json!({
        "model": model, "prompt": "vor tu", "seed": 1, "max_tokens": 100, "top_k": 3, "logprobs": 5,
    });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    server.complete(&body)["choices"][0].clone()
}

#[test]
fn tokens_stream_in_the_colours_of_their_bands_and_tell_of_themselves() {
    let Some((server, mut page)) = opened() else { return };
    page.value(ONE_EVENT_AT_A_TIME);
    ask(&mut page, "vor tu");
    wait_for_the_end(&mut page);
    let tokens = page.number("document.querySelectorAll('.token').length");
    assert_eq!(page.number("shownOneByOne"), tokens, "each token is shown when it comes");
    let choice = answer(&server, "f2", &json!({}));
    assert_eq!(written(&mut page, 0), choice["text"]);

    let band = "token => +[...token.classList].find(name => /^b[0-3]$/.test(name))[1]";
    let bands = page.value(&format!("[...document.querySelectorAll('.token')].map({band})"));
    assert_eq!(bands, choice["f2"]["bands"]);
    let colours = "new Set([0, 1, 2, 3].map(band => \
                   getComputedStyle(document.querySelector(`#legend .b${band}`)).color)).size";
    assert_eq!(page.number(colours), 4.0, "the legend");
    let shares = page.text("document.querySelector('.shares').innerText");
    assert!(shares.contains("human text") && shares.matches('%').count() == 8, "{shares}");

    // The details are of the model that generated the text, not of the one chosen since.
    choose(&mut page, 0, "mle");
    page.point_at("document.querySelectorAll('.token')[3]");
    page.wait_for("document.querySelectorAll('.detail tr').length >= 5");
    let detail = page.text("document.querySelector('.detail').innerText");
    let log = choice["logprobs"]["token_logprobs"][3].as_f64().unwrap();
    let class = format!("{} of 4", choice["f2"]["classes"][3]);
    let class_log = choice["f2"]["class_logprobs"][3].as_f64().unwrap();
    for part in [&percent(log), &class, &percent(class_log), "frequency rank", "band"] {
        assert!(detail.contains(part), "{part}: {detail}");
    }
    assert_eq!(page.complaints, [""; 0]);
}

/// A probability as the page shows it.
fn percent(log: f64) -> String {
    let share = 100.0 * log.exp();
    assert!(share >= 0.01, "choose another token: {share}");
    format!("{share:.2} %")
}

#[test]
fn two_columns_compare_and_a_link_carries_the_settings() {
    let Some((server, mut page)) = opened() else { return };
    page.click("document.getElementById('compare')");
    page.wait_for("document.querySelectorAll('section').length === 2");
    let slide = |page: &mut Page, column: usize, name: &str, value: f64| {
        page.value(&format!(
            "(() => {{ const slider = document.querySelectorAll('section')[{column}]\
             .querySelector('[name={name}]'); slider.value = {value}; \
             slider.dispatchEvent(new Event('input', {{ bubbles: true }})); }})()"
        ));
    };
    slide(&mut page, 0, "class_temperature", 2.0);
    slide(&mut page, 1, "top_k", 7.0);
    slide(&mut page, 1, "top_p", 0.8);
    ask(&mut page, "vor tu");
    wait_for_the_end(&mut page);
    let left = answer(&server, "f2", &json!({ "class_temperature": 2 }));
    let right = answer(&server, "mle", &json!({ "top_k": 7, "top_p": 0.8 }));
    assert_eq!([0, 1].map(|column| written(&mut page, column)), [&left, &right].map(text));

    // The same model twice: two decoders.
    choose(&mut page, 1, "f2");
    ask(&mut page, "vor tu");
    wait_for_the_end(&mut page);
    let right = answer(&server, "f2", &json!({ "top_k": 7, "top_p": 0.8 }));
    assert_ne!(text(&left), text(&right));
    assert_eq!([0, 1].map(|column| written(&mut page, column)), [&left, &right].map(text));

    choose(&mut page, 1, "mle");
    page.click("document.getElementById('link')");
    let link = page.text("location.href");
    assert!(link.contains('#'), "{link}");
    visit(&mut page, &link);
    page.wait_for("document.querySelectorAll('section').length === 2");
    assert_eq!(page.text("document.getElementById('prompt').value"), "vor tu");
    let restored = "[columns[0].settings.class_temperature, columns[1].settings.top_k, \
                    columns[1].settings.top_p, columns[1].settings.model]";
    assert_eq!(page.value(restored), json!([2, 7, 0.8, "mle"]));
    let address = link.split('#').next().unwrap();
    for broken in [link.replace("%22", "%7B"), format!("{address}#null")] {
        visit(&mut page, &broken);
        assert_eq!(page.number("document.querySelectorAll('section').length"), 1.0, "{broken}");
    }
    assert_eq!(page.complaints, [""; 0]);
}

fn text(choice: &Value) -> String {
    choice["text"].as_str().unwrap().to_owned()
}

#[test]
fn a_phone_shows_one_column_below_the_other_and_nothing_is_cut() {
    let Some((_server, mut page)) = opened() else { return };
    page.resize(390, 844, true);
    page.click("document.getElementById('compare')");
    ask(&mut page, "vor tu");
    wait_for_the_end(&mut page);
    assert!(page.number("document.documentElement.scrollWidth") <= 390.0);
    let [above, below] = ["[0].getBoundingClientRect().bottom", "[1].getBoundingClientRect().top"]
        .map(|edge| page.number(&format!("document.querySelectorAll('section'){edge}")));
    assert!(above <= below, "{above} {below}");
    page.click("document.querySelectorAll('.token')[2]");
    page.wait_for("document.querySelectorAll('.detail tr').length >= 5");
    assert_eq!(page.complaints, [""; 0]);
}

#[test]
fn markup_is_text() {
    let Some((_server, mut page)) = opened() else { return };
    let markup = "<img src=x onerror='window.run = 1'><script>window.run = 1</script>";
    ask(&mut page, markup);
    wait_for_the_end(&mut page);
    let shown = page.text("document.querySelector('.text .prompt').textContent");
    assert_eq!(shown, markup);
    assert_eq!(page.number("document.querySelectorAll('.text img, .text script').length"), 0.0);
    assert!(page.value("window.run ?? null").is_null());
    // An error of the API is shown.
    page.value("document.getElementById('length').value = 100000");
    page.click("document.getElementById('go')");
    page.wait_for("document.querySelectorAll('.text .error').length > 0");
    let refusal = page.text("document.querySelector('.text .error').textContent");
    assert!(refusal.starts_with("`max_tokens` is 100000, more than "), "{refusal}");
}
