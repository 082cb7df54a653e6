//! The behaviours a script can ask for, and their names in it. How each goes wrong on the wire is in
//! `play`.

mod play;

use serde_json::Value;

pub(crate) use self::play::Play;
use crate::script::RpcError;

/// How a request is answered; the well-formed answer is made before, and is spoilt here.
#[derive(Clone, Debug)]
pub(crate) enum Behaviour {
    Ok,
    Hang,
    Exit(u8),
    Abort,
    Dup,
    WrongId,
    StrId,
    Both,
    NoJsonrpc,
    Batch,
    BadUtf8,
    Surrogate,
    Ansi,
    Bom,
    Crlf,
    PartialEof,
    NotJson,
    NotObject,
    NoiseJson,
    CloseStdout,
    /// Waits first; a cancel meanwhile means no answer.
    Delay {
        ms: u64,
        then: Box<Self>,
    },
    Deep(usize),
    Big(usize),
    Noise(u64),
    Progress(u64),
    /// Writes the answer a few bytes at a time.
    Drip {
        bytes: usize,
        ms: u64,
    },
    RpcError(RpcError),
    /// This result; in the modern era `resultType` is added when it is not there.
    Result(Value),
    /// This text as the result, whatever it is.
    RawResult(String),
    /// This text as the line, with `$ID` for the id of the request.
    RawLine(String),
    /// Bytes that no script could hold, and then the answer.
    Flood(Flood),
}

/// `rounds` times: `before`, `times` times `text`, `after`.
#[derive(Clone, Debug)]
pub(crate) struct Flood {
    pub(crate) before: String,
    pub(crate) text: String,
    pub(crate) times: usize,
    pub(crate) after: String,
    pub(crate) rounds: u64,
}

impl Flood {
    fn parse(value: &Value) -> Result<Self, String> {
        let text = |name: &str| {
            let text = value.get(name).map_or(Some(""), Value::as_str);
            let text = text.map(str::to_owned);
            text.ok_or_else(|| format!("`{name}` of a flood must be a string"))
        };
        let number = |name: &str| {
            let number = value.get(name).map_or(Some(1), Value::as_u64);
            number.ok_or_else(|| format!("`{name}` of a flood must be a number"))
        };
        Ok(Self {
            before: text("before")?,
            text: text("text")?,
            times: usize::try_from(number("times")?).map_err(|error| error.to_string())?,
            after: text("after")?,
            rounds: number("rounds")?,
        })
    }
}

impl Behaviour {
    pub(crate) fn parse(value: &Value) -> Result<Self, String> {
        match value {
            Value::String(name) => Self::named(name),
            Value::Object(members) => {
                let mut known = members.iter().filter(|(name, _)| *name != "then");
                match (known.next(), known.next()) {
                    (Some((name, setting)), None) => Self::set(name, setting, members.get("then")),
                    _ => Err("a behaviour is one member".to_owned()),
                }
            }
            _ => Err("a behaviour is a name or an object".to_owned()),
        }
    }

    fn named(name: &str) -> Result<Self, String> {
        if let Some(code) = name.strip_prefix("exit:") {
            return code
                .parse()
                .map(Self::Exit)
                .map_err(|_| format!("`{code}` is not an exit code from 0 to 255"));
        }
        Ok(match name {
            "ok" => Self::Ok,
            "hang" => Self::Hang,
            "abort" => Self::Abort,
            "dup" => Self::Dup,
            "wrong-id" => Self::WrongId,
            "str-id" => Self::StrId,
            "both" => Self::Both,
            "no-jsonrpc" => Self::NoJsonrpc,
            "batch" => Self::Batch,
            "bad-utf8" => Self::BadUtf8,
            "surrogate" => Self::Surrogate,
            "ansi" => Self::Ansi,
            "bom" => Self::Bom,
            "crlf" => Self::Crlf,
            "partial-eof" => Self::PartialEof,
            "not-json" => Self::NotJson,
            "not-object" => Self::NotObject,
            "noise-json" => Self::NoiseJson,
            "close-stdout" => Self::CloseStdout,
            _ => return Err(format!("behaviour `{name}` is not known")),
        })
    }

    fn set(name: &str, setting: &Value, then: Option<&Value>) -> Result<Self, String> {
        let number = || {
            let number = setting.as_u64();
            number.ok_or_else(|| format!("`{name}` must be a number"))
        };
        let size = || usize::try_from(number()?).map_err(|error| error.to_string());
        let text = || {
            let text = setting.as_str().map(str::to_owned);
            text.ok_or_else(|| format!("`{name}` must be a string"))
        };
        if then.is_some() && name != "delay_ms" {
            return Err("only `delay_ms` takes a `then`".to_owned());
        }
        Ok(match name {
            "delay_ms" => Self::Delay {
                ms: number()?,
                then: Box::new(then.map_or(Ok(Self::Ok), Self::parse)?),
            },
            "deep" => Self::Deep(size()?),
            "big" => Self::Big(size()?),
            "noise" => Self::Noise(number()?),
            "progress" => Self::Progress(number()?),
            "drip" => match (setting["bytes"].as_u64(), setting["ms"].as_u64()) {
                (Some(bytes @ 1..), Some(ms)) => Self::Drip {
                    bytes: usize::try_from(bytes).map_err(|error| error.to_string())?,
                    ms,
                },
                _ => return Err("`drip` needs `bytes` above 0 and `ms`".to_owned()),
            },
            "rpc_error" => Self::RpcError(RpcError::parse(setting)?),
            "result" => Self::Result(setting.clone()),
            "raw_result" => Self::RawResult(text()?),
            "raw_line" => Self::RawLine(text()?),
            "flood" => Self::Flood(Flood::parse(setting)?),
            _ => return Err(format!("behaviour `{name}` is not known")),
        })
    }
}
