"""Words that packed bytes may point to: what events of agents have in common, whoever's they are.

Part of the stored form: a change would make every packed body unreadable, so a new list is a new codec. The commonest
stand last, where a pointer to them is shortest.
"""

from __future__ import annotations

from typing import Final

WORDS: Final = (
    # plain words of reports, reviews and plans
    b" the following because should would could which there their about other through between without after before "
    b"implementation configuration documentation environment information application development performance "
    b"function variable parameter argument default response request message content session history summary "
    b"database directory repository branch commit version release package install update create remove delete "
    b"running completed failed passed successfully warning exception traceback assertion expected received actual "
    b"approved rejected required permission constraint decision resolved security endpoint service deploy customer "
    b"reservation payment account address airline flight passenger "
    # code and what tools print
    b"\\n        self.\\n    def __init__(self, \\n    return \\n    if not \\n    else:\\n        raise \\n"
    b"import \\nfrom \\nclass \\n    async def \\n    await \\n    const \\n  let \\n  function(\\n  }, \\n});\\n"
    b'if err != nil {\\n\\t\\treturn \\tif err := \\nfunc (\\nfunc Test(t *testing.T) {\\n\\tt.Fatalf(\\"\\n}\\n\\n'
    b'package main\\nstruct {\\n\\tstring `json:\\"\\"`\\n export default \\n public static void \\n #include \\n'
    b"\\n## \\n### \\n- **\\n- [ ] \\n- [x] \\n1. \\n2. \\n3. \\n```bash\\n```python\\n```\\n| --- | --- |\\n"
    b"diff --git a/ b/\\nindex \\n--- a/\\n+++ b/\\n@@ - +1, @@\\n ok  \\t\\nFAIL\\t\\n--- PASS: \\n--- FAIL: \\n"
    b"git add git commit -m git push git status git diff gh pr create gh issue view npm test npm run pytest -q "
    b"2>&1 | head -20 | tail -50 | grep -n && cd /Users/ /home/ /src/ /tests/ /docs/ /cmd/ /internal/ "
    b".github/workflows/ https://github.com/ http://localhost: README.md CLAUDE.md package.json tsconfig.json "
    b"go.mod main.go _test.go .ts Co-Authored-By: \\n     1\xe2\x86\x92\\n     2\xe2\x86\x92\\n "
    b"   10\xe2\x86\x92\\n   100\xe2\x86\x92 "
    b"The file has been updated successfully. No files found No matches found Found files Exit code 1\\n "
    # JSON of messages, calls and results
    b'{"type":"object","properties":{"required":["additionalProperties":false,"description":"},"status":"pending",'
    b'"status":"in_progress","status":"completed","activeForm":"}]},"todos":[{"content":"'
    b'"old_string":"","new_string":"","replace_all":false},"output_mode":"content","-n":true,"glob":"*.ts","path":"'
    b'","timeout":120000,"run_in_background":true,"subagent_type":"Explore","prompt":"","limit":50,"offset":100}}'
    b'{"type":"image","source":{"type":"base64","media_type":"image/png","data":"}}'
    b'{"id":"call_","type":"function","function":{"name":"","arguments":"{\\"}"}}{"role":"user","content":"'
    b'{"type":"tool_use","id":"toolu_01","name":"TodoWrite","input":{"todos":[{"content":"'
    b'{"type":"tool_use","id":"toolu_01","name":"Write","input":{"file_path":"/Users/","content":"'
    b'{"type":"tool_use","id":"toolu_01","name":"Edit","input":{"replace_all":false,"file_path":"/Users/'
    b'{"type":"tool_use","id":"toolu_01","name":"Grep","input":{"pattern":"","path":"/Users/'
    b'{"type":"tool_use","id":"toolu_01","name":"Read","input":{"file_path":"/Users/'
    b'{"type":"tool_use","id":"toolu_01","name":"Bash","input":{"command":"","description":"Check '
    b'{"type":"thinking","thinking":"Now I need to Let me check the The user wants ","signature":"'
    b'{"tool_use_id":"toolu_01","type":"tool_result","content":[{"type":"text","text":"'
    b'{"type":"tool_result","content":"","is_error":true,"tool_use_id":"toolu_01"}'
    b'{"type":"text","text":"Let me Now let me I\'ll "}{"type":"tool_use","id":"toolu_01","name":"'
)
