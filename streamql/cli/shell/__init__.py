"""The `streamql` shell: a prompt over the same runner that scripts use. What it offers is data (`commands`, `topics`), what it
computes is pure (`completion`, `highlight`, `prompt`); `app` and `editor` connect them to a session and a terminal."""
